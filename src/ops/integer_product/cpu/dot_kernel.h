// Instructions that add up products of bytes, where the processor has them.
#pragma once

#include "ops/gemm/cpu/micro_kernel.h"

namespace anydml {

inline constexpr uint32_t kStepsOfWord = 4;
inline constexpr uint32_t kMaxDotWidth = 12;  // rows or columns of a tile

// A micro-kernel of bytes (MicroKernel::bytes) for products of so many rows; null: there are no such
// instructions.
const MicroKernel* FindDotKernel(uint64_t rows);

}  // namespace anydml
