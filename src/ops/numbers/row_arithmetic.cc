#include "ops/numbers/row_arithmetic.h"

namespace anydml {

void FinishRow(const float* x, float* y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = OneNan(x[i]);
}

void FinishMixedRows(const float* __restrict a, float a_weight, const float* __restrict b, float b_weight,
                     float* __restrict y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = OneNan(a[i] * a_weight + b[i] * b_weight);
}

void RoundRow(const float* x, float* y, uint64_t count) {
  constexpr float kWhole = 0x1.8p23f;
  for (uint64_t i = 0; i < count; ++i) y[i] = (x[i] + kWhole) - kWhole;
}

void ScaleRow(const float* __restrict x, float weight, float* __restrict y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = x[i] * weight;
}

void AddScaledRow(const float* __restrict x, float weight, float* __restrict y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = y[i] + x[i] * weight;
}

void MixRows(const float* __restrict a, float a_weight, const float* __restrict b, float b_weight,
             float* __restrict y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = a[i] * a_weight + b[i] * b_weight;
}

void DoubleRow(const float* __restrict x, uint64_t count, const float (&even)[2], const float (&odd)[2],
               float* __restrict y) {
  const float e0 = even[0], e1 = even[1], o0 = odd[0], o1 = odd[1];
  for (uint64_t i = 0; i < count; ++i) {
    y[2 * i] = x[i] * e0 + x[i + 1] * e1;
    y[2 * i + 1] = x[i] * o0 + x[i + 1] * o1;
  }
}

void HalveRow(const float* __restrict x, uint64_t count, const float (&weights)[2], float* __restrict y) {
  const float w0 = weights[0], w1 = weights[1];
  for (uint64_t i = 0; i < count; ++i) y[i] = x[2 * i] * w0 + x[2 * i + 1] * w1;
}

}  // namespace anydml
