// The affine maps of a description that was checked.
#pragma once

#include <vector>

#include "ops/move/problem.h"

namespace anydml {

MoveProblem BuildMoveProblem(const OperatorDesc& desc);

// The window of SLICE1 and SLICE_GRAD begins at its end where the stride is negative.
constexpr int64_t WindowStart(uint32_t offset, uint32_t size, int32_t stride) {
  return stride > 0 ? int64_t{offset} : int64_t{offset} + size - 1;
}

}  // namespace anydml
