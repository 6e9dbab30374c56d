// The affine maps of a checked description.
#pragma once

#include <vector>

#include "ops/move/problem.h"

namespace anydml {

MoveProblem BuildMoveProblem(const OperatorDesc& desc);

// With a negative stride, the window of SLICE1 and SLICE_GRAD begins at its end.
constexpr int64_t WindowStart(uint32_t offset, uint32_t size, int32_t stride) {
  return stride > 0 ? int64_t{offset} : int64_t{offset} + size - 1;
}

}  // namespace anydml
