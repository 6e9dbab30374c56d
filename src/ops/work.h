// How long operators take, from their sizes.
#pragma once

#include <cstdint>

#include "ops/operator.h"

namespace anydml {

// As WorkEstimate::work_bytes, of a kernel on the CPU: its own, or, of an operator, one from the sizes of its
// tensors, with room to spare, since it is small work that is told from the rest. Unknown for the reference,
// where the data or a window decide, and where nobody has looked. `desc` may be null.
uint64_t WorkOf(const LoweredOperator& lowered, const OperatorDesc* desc);

}  // namespace anydml
