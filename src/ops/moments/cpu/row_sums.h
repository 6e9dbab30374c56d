// Sums of neighbouring FLOAT32 numbers, by vectors where there are. In FLOAT32: what is added up from them
// should be a wider type, and rows short.
#pragma once

#include <cstdint>

namespace anydml {

inline constexpr uint64_t kSummedAtOnce = 1024;

float SumOf(const float* x, uint64_t count);
float SumOfMagnitudes(const float* x, uint64_t count);
float SumOfSquares(const float* x, uint64_t count, float center);                   // of x - center
float SumOfProducts(const float* g, const float* x, uint64_t count, float center);  // g * (x - center)

}  // namespace anydml
