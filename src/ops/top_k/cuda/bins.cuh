// Counts words in bins, by a block.
#pragma once

#include <cstdint>

namespace anydml {

// Functions of a whole block (or of one warp, if that is kThreads): every thread calls them with the same
// arguments.
template <int kThreads, int kBins>
class BlockBins {
 public:
  static constexpr int kWarps = kThreads / 32;

  struct alignas(16) Shared {
    uint4 bins[kBins / 4];
    uint32_t warp_sums[kWarps];
    uint32_t cut_bin, cut_before, cut_count;
  };

  // The bin that contains the k-th.
  struct Cut {
    uint32_t bin;
    uint32_t before;  // in better bins
    uint32_t count;
    bool crowded;  // a bin up to this one, or slightly after it, has more than wanted
  };

  __device__ explicit BlockBins(Shared* shared) : shared_(*shared) {}

  static __device__ void Sync() {
    if constexpr (kWarps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
  static __device__ int lane() { return threadIdx.x % 32; }
  static __device__ int warp() { return threadIdx.x / 32; }

  // A barrier must follow these before anything else.
  __device__ void Clear() {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) shared_.bins[i * kThreads + threadIdx.x] = make_uint4(0, 0, 0, 0);
  }
  __device__ uint32_t Add(uint32_t bin) { return atomicAdd(&At(bin), 1); }  // returns how many were in it

  __device__ uint32_t& At(uint32_t bin) { return reinterpret_cast<uint32_t*>(shared_.bins)[bin]; }

  // Turns counts into begins of bins.
  __device__ Cut FindCut(uint32_t k, uint32_t most) {
    uint4 counts[kVectors];
    uint32_t sum = 0;
    uint32_t fullest = 0;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      counts[i] = shared_.bins[threadIdx.x * kVectors + i];
      sum += counts[i].x + counts[i].y + counts[i].z + counts[i].w;
      fullest = max(max(fullest, max(counts[i].x, counts[i].y)), max(counts[i].z, counts[i].w));
    }
    uint32_t before = SumBefore(sum);
    const bool has_cut = before < k && k <= before + sum;
    bool crowded = before < k && fullest > most;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const uint32_t v = threadIdx.x * kVectors + i;
      const uint32_t in_bin[4] = {counts[i].x, counts[i].y, counts[i].z, counts[i].w};
      uint32_t begins[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        begins[b] = before;
        before += in_bin[b];
        if (has_cut && begins[b] < k && k <= before) {
          shared_.cut_bin = 4 * v + b;
          shared_.cut_before = begins[b];
          shared_.cut_count = in_bin[b];
        }
      }
      shared_.bins[v] = make_uint4(begins[0], begins[1], begins[2], begins[3]);
    }
    if constexpr (kWarps == 1) {
      crowded = __any_sync(~0u, crowded);
      __syncwarp();
    } else {
      crowded = __syncthreads_or(crowded);
    }
    return {shared_.cut_bin, shared_.cut_before, shared_.cut_count, crowded};
  }

  // The sum of the numbers of previous threads. One barrier; another one is needed before the next call.
  __device__ uint32_t SumBefore(uint32_t mine) {
    uint32_t inclusive = mine;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, inclusive, lanes);
      if (lane() >= lanes) inclusive += other;
    }
    uint32_t before = inclusive - mine;
    if constexpr (kWarps > 1) {
      if (lane() == 31) shared_.warp_sums[warp()] = inclusive;
      Sync();
      before += __reduce_add_sync(~0u, lane() < warp() ? shared_.warp_sums[lane()] : 0);
    }
    return before;
  }

 private:
  static constexpr int kVectors = kBins / 4 / kThreads;
  static_assert(kVectors * 4 * kThreads == kBins);

  Shared& shared_;
};

}  // namespace anydml
