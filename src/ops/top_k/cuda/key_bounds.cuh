// Bounds for the K best among the elements of a block's threads.
#pragma once

#include "ops/top_k/cuda/bins.cuh"
#include "ops/top_k/cuda/key_spread.cuh"

namespace anydml {

template <typename Key>
struct KeyBound {
  Key worst;
  Key best;
  bool tied;  // more than wanted are equal to `worst`
};

// Bounds for some keys of every thread of a block, or of one warp, if that is kThreads. By bisection: rounds
// are many and short.
template <typename Key, int kThreads>
class KeyBounds {
 public:
  static constexpr int kWarps = kThreads / 32;

  struct Shared {
    Key minima[kWarps], maxima[kWarps];
    uint32_t counts[2][3][kWarps];  // of even and odd rounds
  };

  __device__ explicit KeyBounds(Shared* shared) : shared_(*shared) {}

  // The least of all threads' `worst` and the largest of their `best`. One barrier.
  __device__ void Join(Key* worst, Key* best) {
    *worst = LeastOfLanes(*worst);
    *best = ~LeastOfLanes(~*best);
    if constexpr (kWarps > 1) {
      const int lane = threadIdx.x % 32;
      if (lane == 0) {
        shared_.minima[threadIdx.x / 32] = *worst;
        shared_.maxima[threadIdx.x / 32] = *best;
      }
      __syncthreads();
      *worst = LeastOfLanes(shared_.minima[lane % kWarps]);
      *best = ~LeastOfLanes(~shared_.maxima[lane % kWarps]);
    }
  }

  // A key that at least k (1 or more) of the keys reach, and at most `most` unless they are tied.
  template <int kCount>
  __device__ KeyBound<Key> Bound(const Key (&keys)[kCount], uint32_t k, uint32_t most) {
    Key worst = keys[0];
    Key best = keys[0];
#pragma unroll
    for (const Key key : keys) {
      worst = min(worst, key);
      best = max(best, key);
    }
    Join(&worst, &best);
    Key last = best;  // that may be the bound
    for (int round = 0; worst < last; ++round) {
      const Key middle = last - (last - worst) / 2;
      const Key tries[3] = {static_cast<Key>(middle - (middle - worst) / 2), middle,
                            static_cast<Key>(last - (last - middle) / 2)};
      uint32_t reaching[3] = {};
#pragma unroll
      for (const Key key : keys) {
#pragma unroll
        for (int i = 0; i < 3; ++i) reaching[i] += key >= tries[i];
      }
      Sum<kCount>(round % 2, reaching);
      uint32_t count = 0;
      Key beyond = last;
      Key found = worst;
#pragma unroll
      for (int i = 2; i >= 0; --i) {
        if (count != 0) continue;
        if (reaching[i] >= k) {
          found = tries[i];
          count = reaching[i];
        } else {
          beyond = tries[i] - 1;
        }
      }
      worst = found;
      last = beyond;
      if (count != 0 && count <= most) return {worst, best, false};
    }
    return {worst, best, true};
  }

 private:
  template <int kCount>
  __device__ void Sum(int turn, uint32_t (&counts)[3]) {
    if constexpr (kCount * kThreads < 1 << 10) {  // all at once
      uint32_t packed[1] = {counts[0] | counts[1] << 10 | counts[2] << 20};
      SumOfThreads(turn, packed);
#pragma unroll
      for (int i = 0; i < 3; ++i) counts[i] = packed[0] >> 10 * i & 1023;
    } else {
      SumOfThreads(turn, counts);
    }
  }
  template <int kSums>
  __device__ void SumOfThreads(int turn, uint32_t (&sums)[kSums]) {
#pragma unroll
    for (uint32_t& sum : sums) sum = __reduce_add_sync(~0u, sum);
    if constexpr (kWarps > 1) {
      const int lane = threadIdx.x % 32;
      if (lane == 0) {
#pragma unroll
        for (int i = 0; i < kSums; ++i) shared_.counts[turn][i][threadIdx.x / 32] = sums[i];
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        sums[i] = __reduce_add_sync(~0u, lane < kWarps ? shared_.counts[turn][i][lane] : 0);
      }
    }
  }

  static __device__ Key LeastOfLanes(Key key) {
    if constexpr (sizeof(Key) <= 4) {
      return static_cast<Key>(__reduce_min_sync(~0u, uint32_t{key}));
    } else {
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) key = min(key, __shfl_xor_sync(~0u, key, lanes));
      return key;
    }
  }

  Shared& shared_;
};

// The same by counting, which needs fewer barriers: for large blocks.
template <int kBytes, int kThreads, int kBins, int kCount>
__device__ KeyBound<UnsignedOf<kBytes>> BoundByCounting(
    const KeyOrder& order, BlockBins<kThreads, kBins>* bins,
    typename KeyBounds<UnsignedOf<kBytes>, kThreads>::Shared* shared,
    const UnsignedOf<kBytes> (&keys)[kCount], uint32_t k, uint32_t most) {
  using Key = UnsignedOf<kBytes>;
  KeyBounds<Key, kThreads> bounds(shared);
  bins->Clear();
  Key worst = keys[0];
  Key best = keys[0];
#pragma unroll
  for (int i = 1; i < kCount; ++i) {
    worst = min(worst, keys[i]);
    best = max(best, keys[i]);
  }
  bounds.Join(&worst, &best);
  Key bound = best;
  const bool found = DispatchBySpread<kBytes>(order, [&]<bool kByValue>() {
    const KeySpread<kBytes, kBins, kByValue> spread(order, worst, best);
#pragma unroll
    for (int i = 0; i < kCount; ++i) bins->Add(spread.BinOf(keys[i]));
    __syncthreads();
    const auto cut = bins->FindCut(k, ~0u);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (spread.BinOf(keys[i]) <= cut.bin) bound = min(bound, keys[i]);
    }
    return cut.before + cut.count <= most;
  });
  if (!found) return bounds.Bound(keys, k, most);
  bounds.Join(&bound, &best);
  return {bound, best, false};
}

// A rough but quick bound, from the best words of 32 teams of a block's threads.
template <typename Word, int kThreads>
class TeamBound {
 public:
  static constexpr uint32_t kMostGroups = 16;

  struct Shared {
    Word maxima[32];
  };

  // A word that this many of the threads' words reach, up to kMostGroups. Words are distinct, and 0 is no
  // word.
  static __device__ Word Of(Shared* shared, Word word, uint32_t groups) {
    constexpr int kTeam = kThreads / 32;
#pragma unroll
    for (int lanes = kTeam / 2; lanes > 0; lanes /= 2) word = Better(word, ShuffleXor(word, lanes));
    if (threadIdx.x % kTeam == 0) shared->maxima[threadIdx.x / kTeam] = word;
    __syncthreads();
    word = shared->maxima[threadIdx.x % 32];
    uint32_t better = 0;
#pragma unroll
    for (int lanes = 1; lanes < 32; ++lanes) better += ShuffleXor(word, lanes) > word;
    const uint32_t last = __reduce_max_sync(~0u, better < groups ? better : 0);
    return shared->maxima[__ffs(__ballot_sync(~0u, better == last)) - 1];
  }
};

}  // namespace anydml
