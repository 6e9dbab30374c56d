// FLOAT32 attention without biases and masks in one kernel: a block has 16 queries of a head, a warp four of
// them. Keys and values go through shared memory by 128. A warp's logits for these are in registers, four
// keys per thread, and its powers go through shared memory to the threads that sum the values: two halves of
// a warp, each with every second key.
#pragma once

#include <cuda_runtime.h>

#include "ops/attention/cuda/float_attention.cuh"
#include "ops/attention/cuda/running_softmax.cuh"
#include "ops/device/cuda/tensor_cores.cuh"

namespace anydml::float_tiles {

inline constexpr uint32_t kThreads = 128;
inline constexpr uint32_t kWarps = kThreads / 32;
inline constexpr uint32_t kQueriesOfWarp = 4;
inline constexpr uint32_t kQueries = kWarps * kQueriesOfWarp;
inline constexpr uint32_t kKeys = 128;
inline constexpr uint32_t kKeysOfThread = kKeys / 32;
inline constexpr uint32_t kColumns = 64;
inline constexpr uint32_t kKeyStride = kColumns + 4;  // neighbouring keys are in different banks

struct Shared {
  float queries[kQueries][kColumns];
  float keys[kKeys][kKeyStride];
  float values[kKeys][kColumns];
  float4 powers[kWarps][kKeys];  // of the warp's queries
};

// Starts to copy rows [first, first + kRows) of a head, with zeros for missing ones.
template <uint32_t kRows, uint32_t kStride>
__device__ __forceinline__ void StartRows(float (&to)[kRows][kStride], const float* head, uint64_t stride,
                                          uint32_t first, uint32_t end, uint32_t columns) {
  constexpr uint32_t kUnits = kColumns / 4;
  static_assert(kRows * kUnits % kThreads == 0);
#pragma unroll
  for (uint32_t i = 0; i < kRows * kUnits / kThreads; ++i) {
    const uint32_t number = threadIdx.x + i * kThreads;
    const uint32_t row = number / kUnits, column = number % kUnits * 4;
    const bool exists = first + row < end && column < columns;
    StartCopy(static_cast<uint32_t>(__cvta_generic_to_shared(&to[row][column])),
              exists ? head + (first + row) * stride + column : head, exists);
  }
}

__device__ __forceinline__ float AddProducts(const float4& a, const float4& b, float sum) {
  sum = __fmaf_rn(a.x, b.x, sum);
  sum = __fmaf_rn(a.y, b.y, sum);
  sum = __fmaf_rn(a.z, b.z, sum);
  return __fmaf_rn(a.w, b.w, sum);
}

// A warp's four queries.
class Rows {
 public:
  __device__ Rows(Shared& shared, uint32_t warp, uint32_t lane) : shared_(shared), warp_(warp), lane_(lane) {
#pragma unroll
    for (uint32_t q = 0; q < kQueriesOfWarp; ++q) maxima_[q] = softmax::Larger::kNone;
  }

  // Writes powers of the tile's first `count` keys to shared memory, for the same warp.
  __device__ __forceinline__ void TakePowers(uint32_t count, float scale) {
    float x[kQueriesOfWarp][kKeysOfThread] = {};
    MultiplyKeys(x);
#pragma unroll
    for (uint32_t q = 0; q < kQueriesOfWarp; ++q) {
      float max = maxima_[q];
#pragma unroll
      for (uint32_t k = 0; k < kKeysOfThread; ++k) {
        x[q][k] = lane_ + 32 * k < count ? __fmul_rn(x[q][k], scale) : softmax::Larger::kNone;
        max = fmaxf(max, x[q][k]);
      }
#pragma unroll
      for (uint32_t distance = 16; distance > 0; distance /= 2) {
        max = fmaxf(max, __shfl_xor_sync(~0u, max, distance));
      }
      TakeWeights(max, x[q], &maxima_[q], &sums_[q], results_[q]);
    }
#pragma unroll
    for (uint32_t k = 0; k < kKeysOfThread; ++k) {
      shared_.powers[warp_][lane_ + 32 * k] = {x[0][k], x[1][k], x[2][k], x[3][k]};
    }
    __syncwarp();
  }

  __device__ __forceinline__ void AddValues() {
#pragma unroll 8
    for (uint32_t key = lane_ / 16; key < kKeys; key += 2) {
      const float4 powers = shared_.powers[warp_][key];
      const float4 value = *reinterpret_cast<const float4*>(&shared_.values[key][lane_ % 16 * 4]);
      const float p[] = {powers.x, powers.y, powers.z, powers.w};
      const float v[] = {value.x, value.y, value.z, value.w};
#pragma unroll
      for (uint32_t q = 0; q < kQueriesOfWarp; ++q) {
#pragma unroll
        for (uint32_t c = 0; c < 4; ++c) results_[q][c] = __fmaf_rn(p[q], v[c], results_[q][c]);
      }
    }
  }

  // Combines both halves of the warp and divides; each half then has two of the queries. Calls put(query of
  // the warp, four columns).
  template <typename Put>
  __device__ __forceinline__ void Finish(Put&& put) {
#pragma unroll
    for (uint32_t q = 0; q < kQueriesOfWarp; ++q) {
      float sum = sums_[q];
#pragma unroll
      for (uint32_t distance = 16; distance > 0; distance /= 2) {
        sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
      }
      float4 result;
      float* const numbers = &result.x;
#pragma unroll
      for (uint32_t c = 0; c < 4; ++c) {
        const float all = __fadd_rn(results_[q][c], __shfl_xor_sync(~0u, results_[q][c], 16));
        const float quotient = __fdiv_rn(all, sum);
        numbers[c] = quotient != quotient ? lane::kNan : quotient;
      }
      if (q % 2 == lane_ / 16) put(q, result);
    }
  }

 private:
  __device__ __forceinline__ void MultiplyKeys(float (&x)[kQueriesOfWarp][kKeysOfThread]) const {
#pragma unroll 4
    for (uint32_t column = 0; column < kColumns; column += 4) {
      float4 queries[kQueriesOfWarp], keys[kKeysOfThread];
#pragma unroll
      for (uint32_t q = 0; q < kQueriesOfWarp; ++q) {
        queries[q] = *reinterpret_cast<const float4*>(&shared_.queries[warp_ * kQueriesOfWarp + q][column]);
      }
#pragma unroll
      for (uint32_t k = 0; k < kKeysOfThread; ++k) {
        keys[k] = *reinterpret_cast<const float4*>(&shared_.keys[lane_ + 32 * k][column]);
      }
#pragma unroll
      for (uint32_t q = 0; q < kQueriesOfWarp; ++q) {
#pragma unroll
        for (uint32_t k = 0; k < kKeysOfThread; ++k) x[q][k] = AddProducts(queries[q], keys[k], x[q][k]);
      }
    }
  }

  Shared& shared_;
  const uint32_t warp_, lane_;
  float maxima_[kQueriesOfWarp], sums_[kQueriesOfWarp] = {};  // sums: of the thread's keys
  float results_[kQueriesOfWarp][4] = {};                     // of every second key, four columns
};

__global__ void __launch_bounds__(kThreads) AttendFloats(const __grid_constant__ FloatAttention p) {
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
  Rows rows(shared, warp, lane);
  for (uint32_t first = 0; first < p.keys; first += kKeys) {
    if (first > 0) __syncthreads();  // the previous tile is no longer used
    StartRows(shared.keys, key, p.key.row, first, p.keys, p.columns);
    MarkCopies();
    StartRows(shared.values, value, p.value.row, first, p.keys, p.value_columns);
    MarkCopies();
    WaitForCopies<1>();
    __syncthreads();
    rows.TakePowers(p.keys - first, p.scale);
    WaitForCopies<0>();
    __syncthreads();
    rows.AddValues();
  }
  LetNextStart();
  rows.Finish([&](uint32_t q, const float4& result) {
    const uint32_t query = first_query + warp * kQueriesOfWarp + q, column = lane % 16 * 4;
    if (query >= p.queries || column >= p.value_columns) return;
    *reinterpret_cast<float4*>(p.output_data + p.output.At(b, h, query) + column) = result;
  });
}

}  // namespace anydml::float_tiles
