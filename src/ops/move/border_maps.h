// PADDING modes other than constants: elements outside repeat elements inside.
#pragma once

#include <span>
#include <vector>

#include "ops/move/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {

using Copies = std::vector<MoveCopy>;

// A dimension's stride, signed.
inline int64_t StrideOf(const TensorDesc& tensor, uint32_t d) { return int64_t{tensor.strides[d]}; }

// The coordinate inside a dimension of `size` for coordinate i, which may be outside. `mode` is not
// kConstant.
int64_t PaddedCoordinate(PaddingMode mode, int64_t i, int64_t size);

// `mode` is not kConstant here either.
std::vector<Copies> BorderStages(const TensorDesc& input, const TensorDesc& output, PaddingMode mode,
                                 std::span<const uint32_t> start, std::span<const uint32_t> end);

}  // namespace anydml
