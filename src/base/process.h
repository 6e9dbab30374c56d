// Distinguishes a forked child from its parent, whose threads it does not have.
#pragma once

#include <cstdint>

namespace anydml {

// A different number in the child after every fork.
uint32_t CurrentProcess() noexcept;

}  // namespace anydml
