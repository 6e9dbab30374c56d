// Arithmetic on rows of FLOAT32, in loops that compilers turn into vectors. All NaNs that are written are the
// one with the bits 0x7FC00000.
#pragma once

#include <cstdint>
#include <limits>

namespace anydml {

inline float OneNan(float x) {
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  return x != x ? std::numeric_limits<float>::quiet_NaN() : x;
}

inline void CopyRow(const float* x, float* y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = OneNan(x[i]);
}

inline void ScaleRow(const float* __restrict x, float weight, float* __restrict y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = OneNan(x[i] * weight);
}

inline void AddScaledRow(const float* __restrict x, float weight, float* __restrict y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = OneNan(y[i] + x[i] * weight);
}

inline void BlendRows(const float* __restrict a, float a_weight, const float* __restrict b, float b_weight,
                      float* __restrict y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = OneNan(a[i] * a_weight + b[i] * b_weight);
}

// Two sums of every element and the one behind it.
inline void DoubleRow(const float* __restrict x, uint64_t count, const float (&even)[2],
                      const float (&odd)[2], float* __restrict y) {
  const float e0 = even[0], e1 = even[1], o0 = odd[0], o1 = odd[1];
  for (uint64_t i = 0; i < count; ++i) {
    y[2 * i] = OneNan(x[i] * e0 + x[i + 1] * e1);
    y[2 * i + 1] = OneNan(x[i] * o0 + x[i + 1] * o1);
  }
}

// Halves to even; numbers below 2^22.
inline void RoundRow(const float* x, float* y, uint64_t count) {
  constexpr float kWhole = 0x1.8p23f;
  for (uint64_t i = 0; i < count; ++i) y[i] = (x[i] + kWhole) - kWhole;
}

}  // namespace anydml
