// Prefix sums over the threads of a block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace anydml {

// The sum of the values of all previous threads; `total` is the sum of all. All kThreads of the block call
// it; `warp_sums` belongs to the block and may be reused after a barrier.
template <uint32_t kThreads>
__device__ uint32_t SumBefore(uint32_t value, uint32_t (&warp_sums)[kThreads / 32], uint32_t* total) {
  constexpr uint32_t kWarps = kThreads / 32;
  static_assert(kThreads % 32 == 0 && kWarps <= 32);
  const uint32_t lane = threadIdx.x % 32;
  const auto sum_up = [lane](uint32_t sum) {
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += other;
    }
    return sum;
  };
  const uint32_t sum = sum_up(value);
  if (lane == 31) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    const uint32_t sums = sum_up(lane < kWarps ? warp_sums[lane] : 0);
    if (lane < kWarps) warp_sums[lane] = sums;
  }
  __syncthreads();
  *total = warp_sums[kWarps - 1];
  return sum - value + (threadIdx.x < 32 ? 0 : warp_sums[threadIdx.x / 32 - 1]);
}

}  // namespace anydml
