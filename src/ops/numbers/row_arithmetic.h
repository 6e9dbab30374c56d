// Arithmetic on rows of FLOAT32, in loops that compilers vectorise.
#pragma once

#include <cstdint>
#include <limits>

namespace anydml {

// Makes NaNs canonical (0x7FC00000).
inline float OneNan(float x) {
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  return x != x ? std::numeric_limits<float>::quiet_NaN() : x;
}

// These write results.
void FinishRow(const float* x, float* y, uint64_t count);
void FinishMixedRows(const float* a, float a_weight, const float* b, float b_weight, float* y,
                     uint64_t count);
// Halves to even; for numbers below 2^22.
void RoundRow(const float* x, float* y, uint64_t count);

// These write intermediate numbers.
void ScaleRow(const float* x, float weight, float* y, uint64_t count);
void AddScaledRow(const float* x, float weight, float* y, uint64_t count);
void MixRows(const float* a, float a_weight, const float* b, float b_weight, float* y, uint64_t count);
// Two sums of every element and the next one.
void DoubleRow(const float* x, uint64_t count, const float (&even)[2], const float (&odd)[2], float* y);
// A sum of every second element and the next one.
void HalveRow(const float* x, uint64_t count, const float (&weights)[2], float* y);

}  // namespace anydml
