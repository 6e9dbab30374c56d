// Sums of contiguous FLOAT32 numbers, vectorised if possible. They are FLOAT32: rows should be short, and
// their sums be added in a wider type.
#pragma once

#include <cstdint>

namespace anydml {

inline constexpr uint64_t kSummedAtOnce = 1024;

float SumOf(const float* x, uint64_t count);
float SumOfMagnitudes(const float* x, uint64_t count);
float SumOfSquares(const float* x, uint64_t count, float center);                   // of x - center
float SumOfProducts(const float* g, const float* x, uint64_t count, float center);  // g * (x - center)

}  // namespace anydml
