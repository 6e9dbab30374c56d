// The state of a group of threads for a few queries, while it loops over keys and values in units of 16
// bytes.
#pragma once

#include <cuda_fp16.h>

#include "ops/attention/operands.h"
#include "ops/device/cuda/softmax_rows.cuh"

namespace anydml {

// 16 bytes of a row as numbers.
__device__ __forceinline__ void Unpack(const uint4& bits, float (&x)[4]) {
  x[0] = __uint_as_float(bits.x);
  x[1] = __uint_as_float(bits.y);
  x[2] = __uint_as_float(bits.z);
  x[3] = __uint_as_float(bits.w);
}
__device__ __forceinline__ void Unpack(const uint4& bits, float (&x)[8]) {
  const uint32_t words[] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
    x[2 * i] = pair.x;
    x[2 * i + 1] = pair.y;
  }
}

// Rows of a head, past or new.
template <typename T>
struct HeadRows {
  const T* past;
  const T* fresh;
  uint64_t past_rows, past_stride, fresh_stride;

  __device__ HeadRows(const AttentionJoin& join, const void* past_data, const void* fresh_data,
                      const int32_t* lengths, uint64_t b, uint64_t h)
      : past(static_cast<const T*>(past_data) + join.past_view.At(b, h, 0)),
        fresh(static_cast<const T*>(fresh_data) + join.fresh_view.At(b, h, 0)),
        past_rows(join.lengths.exists ? join.lengths.Of(lengths, b) : join.past),
        past_stride(join.past_view.row),
        fresh_stride(join.fresh_view.row) {}

  // 16 bytes of row `r` from column `c` on.
  __device__ __forceinline__ uint4 Load(uint64_t r, uint32_t c) const {
    const T* const row = r < past_rows ? past + r * past_stride : fresh + (r - past_rows) * fresh_stride;
    return *reinterpret_cast<const uint4*>(row + c);
  }
};

// Replaces the logits of some keys by their weights; -infinity is no key. `max` becomes the largest logit of
// these and earlier keys, and `sum` and `results` of earlier keys are scaled to it.
template <uint32_t kCount, uint32_t kColumns>
__device__ __forceinline__ void TakeWeights(float max, float (&x)[kCount], float* maximum, float* sum,
                                            float (&results)[kColumns]) {
  const float base = max == softmax::Larger::kNone ? 0.0f : max;
  const float correction = max == *maximum ? 1.0f : softmax::PowerOf<float>(__fsub_rn(*maximum, base));
  *maximum = max;
  float total = 0;
#pragma unroll
  for (uint32_t u = 0; u < kCount; ++u) {
    const bool exists = x[u] != softmax::Larger::kNone;
    x[u] = exists ? softmax::PowerOf<float>(__fsub_rn(x[u], base)) : 0.0f;
    total = __fadd_rn(total, x[u]);
  }
  *sum = __fmaf_rn(*sum, correction, total);
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c) results[c] = __fmul_rn(results[c], correction);
}

// The softmax over the keys so far, per query, with a thread's columns of the results.
template <uint32_t kQueries, uint32_t kUnit>
struct RunningSoftmax {
  float results[kQueries][kUnit] = {};
  float maxima[kQueries], sums[kQueries] = {};

  __device__ RunningSoftmax() {
#pragma unroll
    for (uint32_t m = 0; m < kQueries; ++m) maxima[m] = softmax::Larger::kNone;
  }

  // Replaces the logits of some keys by their weights; -infinity is no key.
  template <uint32_t kCount>
  __device__ __forceinline__ void TakeWeights(float (&x)[kCount][kQueries]) {
#pragma unroll
    for (uint32_t m = 0; m < kQueries; ++m) {
      float max = maxima[m], weights[kCount];
#pragma unroll
      for (uint32_t u = 0; u < kCount; ++u) {
        weights[u] = x[u][m];
        max = weights[u] > max ? weights[u] : max;
      }
      anydml::TakeWeights(max, weights, &maxima[m], &sums[m], results[m]);
#pragma unroll
      for (uint32_t u = 0; u < kCount; ++u) x[u][m] = weights[u];
    }
  }

  template <uint32_t kCount>
  __device__ __forceinline__ void AddValues(const float (&weights)[kCount][kQueries],
                                            const uint4 (&value_bits)[kCount]) {
#pragma unroll
    for (uint32_t u = 0; u < kCount; ++u) {
      float row[kUnit];
      Unpack(value_bits[u], row);
#pragma unroll
      for (uint32_t m = 0; m < kQueries; ++m) {
        // Values of keys that a query does not see are not used.
        if (weights[u][m] == 0.0f) continue;
#pragma unroll
        for (uint32_t j = 0; j < kUnit; ++j) results[m][j] = __fmaf_rn(weights[u][m], row[j], results[m][j]);
      }
    }
  }
};

}  // namespace anydml
