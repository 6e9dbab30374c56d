// A block's tile of a matrix product: both operands go through shared memory, sums stay in registers. The
// caller provides the operands.
#pragma once

#include <cstdint>

#include "ops/device/product_tiles.h"

namespace anydml {

// kTile elements of an operand by kTileSteps, on their way to shared memory. Neighbouring threads take
// neighbouring steps (`along_k`) or elements, whichever are contiguous in memory. Without along_k every
// thread loads a single element of the tile, threadIdx.x % kTile.
template <typename V, uint32_t kTile>
struct TileFetcher {
  static constexpr uint32_t kCount = kTile * kTileSteps / kTileThreads;

  V values[kCount];

  __device__ static void Place(bool along_k, uint32_t i, uint32_t* element, uint32_t* step) {
    const uint32_t number = threadIdx.x + i * kTileThreads;
    *element = along_k ? number / kTileSteps : number % kTile;
    *step = along_k ? number % kTileSteps : number / kTile;
  }

  template <class Load>
  __device__ void Fetch(bool along_k, uint32_t k, uint32_t k_end, const Load& load) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      uint32_t element, step;
      Place(along_k, i, &element, &step);
      values[i] = k + step < k_end ? load(element, k + step) : V{0};
    }
  }

  __device__ void Put(bool along_k, V (*to)[kTile + 4]) const {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      uint32_t element, step;
      Place(along_k, i, &element, &step);
      to[step][element] = values[i];
    }
  }
};

__device__ inline void AddProduct(float a, float b, float* sum) { *sum = __fmaf_rn(a, b, *sum); }
// Integers wrap.
__device__ inline void AddProduct(uint32_t a, uint32_t b, uint32_t* sum) { *sum += a * b; }
__device__ inline void AddProduct(uint64_t a, uint64_t b, uint64_t* sum) { *sum += a * b; }

// Numbers are V: float, uint32_t or uint64_t. load_a(row of the tile, k) and load_b(column of the tile, k)
// return 0 outside the operands; finish(row, column, sum) is called for every element of the tile.
template <typename V, uint32_t kTile, class LoadA, class LoadB, class Finish>
__device__ void RunTileProduct(uint32_t k_begin, uint32_t k_end, bool a_along_k, bool b_along_k,
                               const LoadA& load_a, const LoadB& load_b, const Finish& finish) {
  constexpr uint32_t kPer = kTile / 16;              // rows, and columns, per thread
  constexpr uint32_t kVector = kPer < 4 ? kPer : 4;  // contiguous ones
  constexpr uint32_t kGroups = kPer / kVector;
  __shared__ alignas(16) V shared_a[2][kTileSteps][kTile + 4];
  __shared__ alignas(16) V shared_b[2][kTileSteps][kTile + 4];
  const uint32_t x = threadIdx.x % 16, y = threadIdx.x / 16;
  V sums[kPer][kPer] = {};
  TileFetcher<V, kTile> a, b;
  a.Fetch(a_along_k, k_begin, k_end, load_a);
  b.Fetch(b_along_k, k_begin, k_end, load_b);
  uint32_t buffer = 0;
  for (uint32_t k = k_begin; k < k_end; k += kTileSteps, buffer ^= 1) {
    a.Put(a_along_k, shared_a[buffer]);
    b.Put(b_along_k, shared_b[buffer]);
    __syncthreads();
    // The other buffer was read before the last barrier.
    if (k_end - k > kTileSteps) {
      a.Fetch(a_along_k, k + kTileSteps, k_end, load_a);
      b.Fetch(b_along_k, k + kTileSteps, k_end, load_b);
    }
#pragma unroll
    for (uint32_t step = 0; step < kTileSteps; ++step) {
      V rows[kPer], columns[kPer];
#pragma unroll
      for (uint32_t i = 0; i < kPer; ++i) {
        rows[i] = shared_a[buffer][step][i / kVector * 64 + y * kVector + i % kVector];
        columns[i] = shared_b[buffer][step][i / kVector * 64 + x * kVector + i % kVector];
      }
#pragma unroll
      for (uint32_t i = 0; i < kPer; ++i) {
#pragma unroll
        for (uint32_t j = 0; j < kPer; ++j) AddProduct(rows[i], columns[j], &sums[i][j]);
      }
    }
  }
  __syncthreads();  // before the next tile's first Put
  static_assert(kGroups * kVector == kPer);
#pragma unroll
  for (uint32_t i = 0; i < kPer; ++i) {
#pragma unroll
    for (uint32_t j = 0; j < kPer; ++j) {
      finish(i / kVector * 64 + y * kVector + i % kVector, j / kVector * 64 + x * kVector + j % kVector,
             sums[i][j]);
    }
  }
}

}  // namespace anydml
