// How the sums of a tile get to where they belong: with bias and limits, through shared memory, so that
// neighbours are stored together.
#pragma once

#include "ops/convolution/cuda/window_product.cuh"

namespace anydml {

__device__ __forceinline__ void PutNumber(float x, float* to) { *to = x; }
__device__ __forceinline__ void PutNumber(float x, __half* to) { *to = __float2half_rn(x); }

template <typename Out, uint32_t kRows, uint32_t kColumns>
struct WindowSums {
  static constexpr uint32_t kPad = 16 / sizeof(Out);
  Out* shared;
  bool by_channels;

  __device__ Out* At(uint32_t row, uint32_t column) const {
    return shared + (by_channels ? row * (kColumns + kPad) + column : column * (kRows + kPad) + row);
  }
};

template <uint32_t kRows, uint32_t kColumns>
constexpr uint32_t WindowSumsBytes() {
  constexpr uint32_t kByRows = kRows * (kColumns + 4), kByColumns = kColumns * (kRows + 4);
  return (kByRows > kByColumns ? kByRows : kByColumns) * sizeof(float);
}

// Sums go through shared memory, so that neighbours are stored together.
template <typename Out, uint32_t kRows, uint32_t kColumns, uint32_t kThreads, class ForSums>
__device__ __forceinline__ void StoreSumsAs(const WindowProduct& p, const WindowPlace& place,
                                            const WindowTable<kRows, kColumns>& table, void* shared,
                                            const ForSums& for_sums) {
  const WindowSums<Out, kRows, kColumns> sums = {static_cast<Out*>(shared), p.stores_by_channels};
  for_sums([&](uint32_t row, uint32_t column, float sum) {
    PutNumber(p.limits.Of(sum + table.bias[column]), sums.At(row, column));
  });
  __syncthreads();
  DispatchByUnit(p.unit_bytes, [&]<typename Unit>() {
    if constexpr (sizeof(Unit) >= sizeof(Out)) {
      constexpr uint32_t kSome = sizeof(Unit) / sizeof(Out);
      const uint32_t per_line = (p.stores_by_channels ? kColumns : kRows) / kSome;
      for (uint32_t i = threadIdx.x; i < kRows * kColumns / kSome; i += kThreads) {
        const uint32_t line = i / per_line, along = i % per_line * kSome;
        const uint32_t row = p.stores_by_channels ? line : along,
                       column = p.stores_by_channels ? along : line;
        if (place.row + row >= place.end || place.column + column >= p.columns) continue;
        if (table.targets[row] == kNowhere) continue;
        Out* const to =
            static_cast<Out*>(p.output) + table.targets[row] + (place.column + column) * p.target.channel;
        *reinterpret_cast<Unit*>(to) = *reinterpret_cast<const Unit*>(sums.At(row, column));
      }
    }
  });
}

// Waits for all threads of the cluster; what they wrote to shared memory can be seen.
__device__ __forceinline__ void SyncCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Of the block of that rank, at the same place as here.
__device__ __forceinline__ float4 LoadFromBlock(uint32_t rank, const float* here) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(here));
  uint32_t there;
  float4 x;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(there)
               : "memory");
  return x;
}

// The blocks of a cluster leave their sums in shared memory; each adds a share of them up, in the order of
// the parts, and stores it.
template <typename Out, uint32_t kRows, uint32_t kColumns, uint32_t kThreads>
__device__ __forceinline__ void StoreClusterShare(const WindowProduct& p, const WindowPlace& place,
                                                  const WindowTable<kRows, kColumns>& table,
                                                  const WindowSums<float, kRows, kColumns>& sums) {
  constexpr uint32_t kSome = 4;
  const uint32_t blocks = p.cluster.divisor(), per_line = (p.stores_by_channels ? kColumns : kRows) / kSome;
  uint32_t rank;
  p.cluster.Divide(blockIdx.x, &rank);
  for (uint32_t i = rank * kThreads + threadIdx.x; i < kRows * kColumns / kSome; i += blocks * kThreads) {
    const uint32_t line = i / per_line, along = i % per_line * kSome;
    const uint32_t row = p.stores_by_channels ? line : along, column = p.stores_by_channels ? along : line;
    if (place.row + row >= place.end || place.column + column >= p.columns) continue;
    float total[kSome] = {};
    for (uint32_t block = 0; block < blocks; ++block) {
      const float4 x = LoadFromBlock(block, sums.At(row, column));
      total[0] += x.x;
      total[1] += x.y;
      total[2] += x.z;
      total[3] += x.w;
    }
    struct alignas(kSome * sizeof(Out)) {
      Out numbers[kSome];
    } result;
    const uint32_t down = p.stores_by_channels ? 0 : 1, right = 1 - down;
#pragma unroll
    for (uint32_t e = 0; e < kSome; ++e) {
      PutNumber(p.limits.Of(total[e] + table.bias[column + e * right]), &result.numbers[e]);
    }
    Out* const output = static_cast<Out*>(p.output) + (place.column + column) * p.target.channel;
    if (p.unit_bytes >= sizeof(result)) {
      if (table.targets[row] == kNowhere) continue;
      *reinterpret_cast<decltype(result)*>(output + table.targets[row]) = result;
      continue;
    }
#pragma unroll
    for (uint32_t e = 0; e < kSome; ++e) {
      if (place.row + row + e * down >= place.end || place.column + column + e * right >= p.columns) break;
      const uint64_t target = table.targets[row + e * down];
      if (target != kNowhere) output[target + e * right * p.target.channel] = result.numbers[e];
    }
  }
}

template <uint32_t kRows, uint32_t kColumns, uint32_t kThreads, class ForSums>
__device__ __forceinline__ void StoreClusterSums(const WindowProduct& p, const WindowPlace& place,
                                                 const WindowTable<kRows, kColumns>& table, void* shared,
                                                 const ForSums& for_sums) {
  const WindowSums<float, kRows, kColumns> sums = {static_cast<float*>(shared), p.stores_by_channels};
  for_sums([&](uint32_t row, uint32_t column, float sum) { *sums.At(row, column) = sum; });
  SyncCluster();
  if (p.is_half_target) {
    StoreClusterShare<__half, kRows, kColumns, kThreads>(p, place, table, sums);
  } else {
    StoreClusterShare<float, kRows, kColumns, kThreads>(p, place, table, sums);
  }
  SyncCluster();  // nobody ends whose memory is still read
}

// Of a thread's column of the tile: loaded before the steps, so that nobody waits for it after them.
template <typename T, uint32_t kColumns>
__device__ __forceinline__ float BiasOf(const WindowProduct& p, const WindowPlace& place) {
  const uint32_t column = place.column + threadIdx.x;
  if (p.bias == nullptr || threadIdx.x >= kColumns || column >= p.columns) return 0;
  return static_cast<float>(
      static_cast<const T*>(p.bias)[(uint64_t{place.group} * p.columns + column) * p.bias_stride]);
}

// `for_sums(put)` calls put(row, column, sum) for all that the thread has. `bias`: of its column.
template <uint32_t kRows, uint32_t kColumns, uint32_t kThreads, class ForSums>
__device__ __forceinline__ void StoreSums(const WindowProduct& p, const WindowPlace& place, float bias,
                                          WindowTable<kRows, kColumns>* table, void* shared,
                                          const ForSums& for_sums) {
  static_assert(kColumns <= kThreads);
  if (threadIdx.x < kColumns) table->bias[threadIdx.x] = bias;
  __syncthreads();
  if (p.cluster.divisor() > 1) {
    StoreClusterSums<kRows, kColumns, kThreads>(p, place, *table, shared, for_sums);
  } else if (p.is_half_target) {
    StoreSumsAs<__half, kRows, kColumns, kThreads>(p, place, *table, shared, for_sums);
  } else {
    StoreSumsAs<float, kRows, kColumns, kThreads>(p, place, *table, shared, for_sums);
  }
}

}  // namespace anydml
