// FLOAT32 attention of many queries without biases and masks: a block has 128 queries of a head and loops
// over keys and values by 128. A thread has 8 queries by 8 keys of the logits, then 8 queries by some columns
// of the results; a query's threads are in one warp. Powers go through shared memory, in the place of the
// keys.
#pragma once

#include <cuda_runtime.h>

#include "ops/attention/cuda/float_attention.cuh"
#include "ops/attention/cuda/running_softmax.cuh"
#include "ops/device/cuda/tensor_cores.cuh"

namespace anydml::float_blocks {

inline constexpr uint32_t kThreads = 256;
inline constexpr uint32_t kQueries = 128, kKeys = 128, kColumns = 128;
inline constexpr uint32_t kDown = 8, kAcross = 8;    // logits of a thread
inline constexpr uint32_t kHigh = kQueries / kDown;  // threads in that direction
inline constexpr uint32_t kWide = kKeys / kAcross;

// Rows begin in different banks.
struct Shared {
  float queries[kQueries][kColumns + 4];
  union {
    float keys[kKeys][kColumns + 4];
    float powers[kQueries][kKeys + 4];
  };
  float values[kKeys][kColumns];
};

template <uint32_t kRows, uint32_t kStride>
__device__ __forceinline__ void StartRows(float (&to)[kRows][kStride], const float* head, uint64_t stride,
                                          uint32_t first, uint32_t end, uint32_t columns) {
  constexpr uint32_t kUnits = kColumns / 4, kApart = kThreads / kUnits;
  static_assert(kRows % kApart == 0);
  const uint32_t row = threadIdx.x / kUnits, column = threadIdx.x % kUnits * 4;
  const float* from = head + (first + row) * stride + column;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(&to[row][column]));
#pragma unroll
  for (uint32_t i = 0; i < kRows / kApart; ++i, from += kApart * stride) {
    const bool exists = first + row + i * kApart < end && column < columns;
    StartCopy(address + i * kApart * kStride * 4, exists ? from : head, exists);
  }
}

__device__ __forceinline__ float4 LoadUnit(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

// A thread's queries.
class Rows {
  static constexpr uint32_t kUnits = kColumns / 4 / kWide;  // per thread: units of columns

 public:
  __device__ __forceinline__ Rows(Shared& shared, uint32_t top, uint32_t left)
      : shared_(shared), top_(top), left_(left) {
#pragma unroll
    for (uint32_t i = 0; i < kDown; ++i) maxima_[i] = softmax::Larger::kNone;
  }

  // Turns the tile's logits into their powers, for the first `count` keys.
  __device__ __forceinline__ void TakePowers(uint32_t count, float scale, float (&x)[kDown][kAcross]) {
    const float* const queries = shared_.queries[top_];
    const float* const keys = shared_.keys[left_];
    constexpr uint32_t kStride = kColumns + 4;
#pragma unroll 4
    for (uint32_t column = 0; column < kColumns; column += 4) {
      float4 rows[kDown];
#pragma unroll
      for (uint32_t i = 0; i < kDown; ++i) rows[i] = LoadUnit(queries + i * kHigh * kStride + column);
#pragma unroll
      for (uint32_t j = 0; j < kAcross; ++j) {
        const float4 key = LoadUnit(keys + j * kWide * kStride + column);
#pragma unroll
        for (uint32_t i = 0; i < kDown; ++i) x[i][j] = __fmaf_rn(rows[i].x, key.x, x[i][j]);
#pragma unroll
        for (uint32_t i = 0; i < kDown; ++i) x[i][j] = __fmaf_rn(rows[i].y, key.y, x[i][j]);
#pragma unroll
        for (uint32_t i = 0; i < kDown; ++i) x[i][j] = __fmaf_rn(rows[i].z, key.z, x[i][j]);
#pragma unroll
        for (uint32_t i = 0; i < kDown; ++i) x[i][j] = __fmaf_rn(rows[i].w, key.w, x[i][j]);
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kDown; ++i) {
      float max = maxima_[i];
#pragma unroll
      for (uint32_t j = 0; j < kAcross; ++j) {
        x[i][j] = left_ + j * kWide < count ? __fmul_rn(x[i][j], scale) : softmax::Larger::kNone;
        max = fmaxf(max, x[i][j]);
      }
      // Lanes that differ in any bit except the last have the same query.
#pragma unroll
      for (uint32_t distance = 16; distance > 1; distance /= 2) {
        max = fmaxf(max, __shfl_xor_sync(~0u, max, distance));
      }
      TakeWeights(max, x[i], &maxima_[i], &sums_[i], results_[i]);
    }
  }

  __device__ __forceinline__ void PutPowers(const float (&x)[kDown][kAcross]) {
#pragma unroll
    for (uint32_t i = 0; i < kDown; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kAcross; ++j) shared_.powers[top_ + i * kHigh][left_ + j * kWide] = x[i][j];
    }
  }

  __device__ __forceinline__ void AddValues() {
    const float* const powers = shared_.powers[top_];
    const float* const values = shared_.values[0] + left_ * 4;
    constexpr uint32_t kStride = kKeys + 4;
#pragma unroll 4
    for (uint32_t key = 0; key < kKeys; key += 4) {
      float4 rows[kDown];
#pragma unroll
      for (uint32_t i = 0; i < kDown; ++i) rows[i] = LoadUnit(powers + i * kHigh * kStride + key);
#pragma unroll
      for (uint32_t k = 0; k < 4; ++k) {
#pragma unroll
        for (uint32_t u = 0; u < kUnits; ++u) {
          const float4 value = LoadUnit(values + (key + k) * kColumns + u * kWide * 4);
#pragma unroll
          for (uint32_t i = 0; i < kDown; ++i) {
            const float power = k == 0 ? rows[i].x : k == 1 ? rows[i].y : k == 2 ? rows[i].z : rows[i].w;
            results_[i][u * 4] = __fmaf_rn(power, value.x, results_[i][u * 4]);
            results_[i][u * 4 + 1] = __fmaf_rn(power, value.y, results_[i][u * 4 + 1]);
            results_[i][u * 4 + 2] = __fmaf_rn(power, value.z, results_[i][u * 4 + 2]);
            results_[i][u * 4 + 3] = __fmaf_rn(power, value.w, results_[i][u * 4 + 3]);
          }
        }
      }
    }
  }

  // Calls put(query of the block, column, four numbers).
  template <typename Put>
  __device__ __forceinline__ void Finish(Put&& put) {
#pragma unroll
    for (uint32_t i = 0; i < kDown; ++i) {
      float sum = sums_[i];
#pragma unroll
      for (uint32_t distance = 16; distance > 1; distance /= 2) {
        sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
      }
#pragma unroll
      for (uint32_t u = 0; u < kUnits; ++u) {
        float4 result;
        float* const numbers = &result.x;
#pragma unroll
        for (uint32_t c = 0; c < 4; ++c) {
          const float quotient = __fdiv_rn(results_[i][u * 4 + c], sum);
          numbers[c] = quotient != quotient ? lane::kNan : quotient;
        }
        put(top_ + i * kHigh, left_ * 4 + u * kWide * 4, result);
      }
    }
  }

 private:
  Shared& shared_;
  const uint32_t top_, left_;
  float maxima_[kDown], sums_[kDown] = {};  // sums: of the thread's keys
  float results_[kDown][kUnits * 4] = {};
};

__global__ void __launch_bounds__(kThreads, 1) AttendBlocks(const __grid_constant__ FloatAttention p) {
  extern __shared__ __align__(16) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t head = blockIdx.x / p.query_blocks;
  const uint64_t b = head / p.heads, h = head % p.heads, key_head = h / p.group;
  const uint32_t first_query = blockIdx.x % p.query_blocks * kQueries;
  const float* const key = p.key_data + p.key.At(b, key_head, 0);
  const float* const value = p.value_data + p.value.At(b, key_head, 0);
  WaitForPrevious();
  StartRows(shared.queries, p.query_data + p.query.At(b, h, 0), p.query.row, first_query, p.queries,
            p.columns);
  // Lanes that differ only in the last bit have the same keys, and lanes that differ only in the second last
  // bit the same queries: a load of 16 bytes then takes two cycles instead of four.
  Rows rows(shared, warp * 2 + lane % 2, lane / 2);
  for (uint32_t first = 0; first < p.keys; first += kKeys) {
    if (first > 0) __syncthreads();  // the previous tiles are no longer used
    StartRows(shared.keys, key, p.key.row, first, p.keys, p.columns);
    MarkCopies();
    StartRows(shared.values, value, p.value.row, first, p.keys, p.value_columns);
    MarkCopies();
    WaitForCopies<1>();
    __syncthreads();
    float x[kDown][kAcross] = {};
    rows.TakePowers(p.keys - first, p.scale, x);
    __syncthreads();  // the keys are no longer used
    rows.PutPowers(x);
    WaitForCopies<0>();
    __syncthreads();
    rows.AddValues();
  }
  LetNextStart();
  rows.Finish([&](uint32_t q, uint32_t column, const float4& result) {
    if (first_query + q >= p.queries || column >= p.value_columns) return;
    *reinterpret_cast<float4*>(p.output_data + p.output.At(b, h, first_query + q) + column) = result;
  });
}

}  // namespace anydml::float_blocks
