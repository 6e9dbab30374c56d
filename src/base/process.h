// Telling a forked child from its parent, whose threads it does not have.
#pragma once

#include <cstdint>

namespace anydml {

// Another number after every fork, in the child.
uint32_t CurrentProcess() noexcept;

}  // namespace anydml
