// What a block does with the candidates of one sequence: bounds the K best, collects what
// reaches the bound, puts it in order.
//
// Both the bound and the order come from counting in bins of equal width between the worst and
// the best candidate. Words differ, so narrower bins separate whatever is crowded in one: equal
// elements, and a few outliers that make the range wide, only cost another round.
#pragma once

#include <cstdint>

#include "ops/top_k/cuda_key.cuh"

namespace anydml {

template <typename Word>
__device__ Word ShuffleXor(Word word, int lanes) {
  if constexpr (sizeof(Word) <= 8) {
    return __shfl_xor_sync(~0u, word, lanes);
  } else {
    const uint64_t low = __shfl_xor_sync(~0u, static_cast<uint64_t>(word), lanes);
    const uint64_t high = __shfl_xor_sync(~0u, static_cast<uint64_t>(word >> 64), lanes);
    return Word{high} << 64 | low;
  }
}

template <typename Word>
__device__ int BitWidth(Word word) {
  if constexpr (sizeof(Word) <= 8) {
    return 64 - __clzll(word);
  } else {
    const auto high = static_cast<uint64_t>(word >> 64);
    return high != 0 ? 128 - __clzll(high) : 64 - __clzll(static_cast<uint64_t>(word));
  }
}

template <typename Word>
__device__ Word Worse(Word a, Word b) {
  return a < b ? a : b;
}
template <typename Word>
__device__ Word Better(Word a, Word b) {
  return a < b ? b : a;
}

template <typename Word>
struct WordRange {
  Word worst;
  Word best;
};

template <typename Key>
struct KeyBound {
  Key worst;
  Key best;
  bool tied;  // more than wanted are equal to `worst`
};

// Bounds for some keys of every thread of a block, or of one warp, if that is kThreads. By bisection:
// the rounds are many and short.
template <typename Key, int kThreads>
class KeyBounds {
 public:
  static constexpr int kWarps = kThreads / 32;

  struct Shared {
    Key worsts[kWarps], bests[kWarps];
    uint32_t counts[2][3][kWarps];  // of rounds in turn
  };

  __device__ explicit KeyBounds(Shared* shared) : shared_(*shared) {}

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
  __device__ void Join(Key* worst, Key* best) {
    *worst = LeastOfLanes(*worst);
    *best = ~LeastOfLanes(~*best);
    if constexpr (kWarps > 1) {
      const int lane = threadIdx.x % 32;
      if (lane == 0) {
        shared_.worsts[threadIdx.x / 32] = *worst;
        shared_.bests[threadIdx.x / 32] = *best;
      }
      __syncthreads();
      *worst = LeastOfLanes(shared_.worsts[lane % kWarps]);
      *best = ~LeastOfLanes(~shared_.bests[lane % kWarps]);
    }
  }

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

// Puts a warp's words in descending order, those of a lane beside each other: bitonic sorting.
template <typename Word, int kCount>
__device__ void SortLanes(Word (&words)[kCount]) {
  const int first = threadIdx.x % 32 * kCount;
  for (int run = 2; run <= 32 * kCount; run *= 2) {
    for (int distance = run / 2; distance >= kCount; distance /= 2) {
#pragma unroll
      for (int w = 0; w < kCount; ++w) {
        const Word other = ShuffleXor(words[w], distance / kCount);
        const bool keep_better = ((first & run) == 0) == ((first & distance) == 0);
        words[w] = (other > words[w]) == keep_better ? other : words[w];
      }
    }
#pragma unroll
    for (int distance = kCount / 2; distance > 0; distance /= 2) {
      if (distance >= run) continue;
#pragma unroll
      for (int w = 0; w < kCount; ++w) {
        if ((w & distance) != 0) continue;
        const Word a = words[w];
        const Word b = words[w + distance];
        const bool swap = (a < b) == (((first + w) & run) == 0);
        words[w] = swap ? b : a;
        words[w + distance] = swap ? a : b;
      }
    }
  }
}

// Functions of a whole block (or of one warp, if that is kThreads): every thread calls them with
// the same arguments.
template <typename Word_, int kThreads, int kBins>
class BlockSelect {
 public:
  using Word = Word_;
  using Range = WordRange<Word>;
  static constexpr int kWarps = kThreads / 32;

  struct Shared {
    uint32_t bins[kBins];
    uint32_t coarse[kBins + 1];
    uint32_t warp_sums[kWarps];
    Word worsts[kWarps], bests[kWarps];
    uint32_t collected;
    uint32_t cut_bin, cut_before, cut_count;
    uint32_t fullest;
  };

  __device__ explicit BlockSelect(Shared* shared) : shared_(*shared) {}

  // The worst and the best word. `for_each(visit)` calls visit(word) for every word that this
  // thread has, here and below.
  template <typename ForEach>
  __device__ Range RangeOf(ForEach&& for_each) {
    Range range{~Word{0}, Word{0}};
    for_each([&](Word word) { range = {Worse(range.worst, word), Better(range.best, word)}; });
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) range = Join(range, Exchanged(range, lanes));
    if constexpr (kWarps > 1) {
      if (lane() == 0) {
        shared_.worsts[warp()] = range.worst;
        shared_.bests[warp()] = range.best;
      }
      Sync();
      range = {shared_.worsts[lane() % kWarps], shared_.bests[lane() % kWarps]};
#pragma unroll
      for (int lanes = kWarps / 2; lanes > 0; lanes /= 2) range = Join(range, Exchanged(range, lanes));
      Sync();
    }
    return range;
  }

  // A word that at least k and at most `limit` (k or more) of the words reach.
  template <typename ForEach>
  __device__ Word Bound(ForEach&& for_each, Range range, uint32_t k, uint32_t limit) {
    uint32_t better = 0;  // than range.best; they reach the bound anyway
    while (true) {
      const int shift = ShiftOf(range);
      Count(for_each, range, shift);
      FindCut(k - better);
      const uint32_t bin = shared_.cut_bin;
      const Word step = Word{bin} << shift;
      const Word best = range.best - step;  // in the bin where the k-th is
      const Word width = (Word{1} << shift) - 1;
      const Word worst = best - range.worst > width ? best - width : range.worst;
      const uint32_t reaching = better + shared_.cut_before + shared_.cut_count;
      better += shared_.cut_before;
      Sync();
      if (reaching <= limit || shift == 0) return worst;
      range = {worst, best};
    }
  }

  // Copies the words that reach `bound` to list, as far as they fit; returns how many there are.
  template <typename ForEach>
  __device__ uint32_t Collect(ForEach&& for_each, Word bound, Word* list, uint32_t capacity) {
    StartCollecting();
    for_each([&](Word word) {
      if (word >= bound) Add(word, list, capacity);
    });
    return Collected();
  }

  // The same in pieces.
  __device__ void StartCollecting() {
    if (threadIdx.x % kThreads == 0) shared_.collected = 0;
    Sync();
  }
  __device__ bool Add(Word word, Word* list, uint32_t capacity) {  // false: it does not fit
    const uint32_t place = atomicAdd(&shared_.collected, 1);
    if (place < capacity) list[place] = word;
    return place < capacity;
  }
  __device__ uint32_t Collected() {
    Sync();
    return shared_.collected;
  }

  // Puts list[0, m), whose words are in `range`, in descending order; `spare` is as long, and
  // the length of both a power of two. Returns where the result is.
  __device__ Word* Sort(Word* list, Word* spare, uint32_t m, Range range) {
    if (m <= kRankedAtMost) return SortByRank(list, spare, m);
    if (m <= kSortedByWarpAtMost) return SortByWarp(list, m);
    const int shift = ShiftOf(range);
    const auto bin_of = [&](Word word) { return BinOf(word, range, shift); };
    if (CountForSort(list, m, bin_of) <= kFullestBin) return SortByBins(list, spare, m, bin_of);
      // Bits of floating-point numbers are spread unevenly: divide the bins anew, each into as many
      // as it has words.
#pragma unroll
    for (int i = 0; i < kBinsPerThread; ++i) {
      shared_.coarse[i * kThreads + threadIdx.x] = shared_.bins[i * kThreads + threadIdx.x];
    }
    if (threadIdx.x % kThreads == 0) shared_.coarse[kBins] = m;
    const uint32_t scale = (kBins << 16) / m;
    const auto fine_bin_of = [&](Word word) {
      const Word offset = range.best - word;
      const auto bin = static_cast<uint32_t>(offset >> shift);
      const auto within = static_cast<uint32_t>(shift < 16 ? offset << (16 - shift) : offset >> (shift - 16));
      const uint32_t begin = shared_.coarse[bin];
      const uint32_t place = begin + ((shared_.coarse[bin + 1] - begin) * (within & 0xFFFF) >> 16);
      return min(static_cast<uint32_t>(uint64_t{place} * scale >> 16), kBins - 1);
    };
    if (CountForSort(list, m, fine_bin_of) <= 4 * kFullestBin) return SortByBins(list, spare, m, fine_bin_of);
    return SortByNetwork(list, m);
  }

  // The K best of any number of words to list (of `capacity` at least k), in order; returns where.
  template <typename ForEach>
  __device__ Word* SelectAndSort(ForEach&& for_each, uint32_t k, Word* list, Word* spare, uint32_t capacity) {
    Range range = RangeOf(for_each);
    range.worst = Bound(for_each, range, k, min(capacity, k + k / 2 + kSortedByWarpAtMost / 2));
    const uint32_t m = Collect(for_each, range.worst, list, capacity);
    return Sort(list, spare, m, range);
  }

  // The sum of every thread's number.
  __device__ uint32_t SumOfThreads(uint32_t mine) {
    const uint32_t before = SumOfThreadsBefore(mine);
    if (threadIdx.x % kThreads == kThreads - 1) shared_.collected = before + mine;
    Sync();
    const uint32_t sum = shared_.collected;
    Sync();
    return sum;
  }

  static __device__ int lane() { return threadIdx.x % 32; }
  static __device__ int warp() { return threadIdx.x / 32; }

 private:
  static constexpr int kBinsPerThread = kBins / kThreads;
  // Comparing all with all is fastest, until it keeps other blocks from their work.
  static constexpr uint32_t kRankedAtMost = kThreads >= 512 ? 128 : 32;
  static constexpr uint32_t kSortedByWarpAtMost = 128;
  static constexpr uint32_t kFullestBin = 16;  // beyond, comparing within bins gets slow

  // A single warp may be one of several in its block.
  static __device__ void Sync() {
    if constexpr (kWarps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  static __device__ Range Join(Range a, Range b) { return {Worse(a.worst, b.worst), Better(a.best, b.best)}; }
  static __device__ Range Exchanged(Range range, int lanes) {
    return {ShuffleXor(range.worst, lanes), ShuffleXor(range.best, lanes)};
  }

  // Bin 0 is the best one; bins are 2^shift wide.
  static __device__ int ShiftOf(Range range) {
    return max(0, BitWidth(static_cast<Word>(range.best - range.worst)) - (31 - __clz(kBins)));
  }
  static __device__ uint32_t BinOf(Word word, Range range, int shift) {
    return static_cast<uint32_t>((range.best - word) >> shift);
  }

  template <typename ForEach>
  __device__ void Count(ForEach&& for_each, Range range, int shift) {
    ClearBins();
    for_each([&](Word word) {
      if (word >= range.worst && word <= range.best) atomicAdd(&shared_.bins[BinOf(word, range, shift)], 1);
    });
    Sync();
  }
  __device__ void ClearBins() {
#pragma unroll
    for (int i = 0; i < kBinsPerThread; ++i) shared_.bins[i * kThreads + threadIdx.x] = 0;
    if (threadIdx.x % kThreads == 0) shared_.fullest = 0;
    Sync();
  }

  // Where the bins of list[0, m) begin; returns the highest count.
  template <typename BinOf>
  __device__ uint32_t CountForSort(const Word* list, uint32_t m, BinOf&& bin_of) {
    ClearBins();
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) atomicAdd(&shared_.bins[bin_of(list[i])], 1);
    Sync();
    FindCut(m);
    const uint32_t fullest = shared_.fullest;
    Sync();
    return fullest;
  }

  template <typename BinOf>
  __device__ Word* SortByBins(Word* list, Word* spare, uint32_t m, BinOf&& bin_of) {
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) {
      spare[atomicAdd(&shared_.bins[bin_of(list[i])], 1)] = list[i];
    }
    Sync();
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) {
      const Word word = spare[i];
      const uint32_t bin = bin_of(word);
      const uint32_t begin = bin == 0 ? 0 : shared_.bins[bin - 1];  // by now, where the bin before ends
      const uint32_t end = shared_.bins[bin];
      uint32_t place = begin;
      for (uint32_t other = begin; other < end; ++other) place += spare[other] > word;
      list[place] = word;
    }
    Sync();
    return list;
  }

  // Makes of counts the places where bins begin, and notes the bin in which the k-th is and the
  // highest count.
  __device__ void FindCut(uint32_t k) {
    uint32_t counts[kBinsPerThread];
    uint32_t sum = 0;
    uint32_t fullest = 0;
#pragma unroll
    for (int i = 0; i < kBinsPerThread; ++i) {
      counts[i] = shared_.bins[threadIdx.x * kBinsPerThread + i];
      sum += counts[i];
      fullest = max(fullest, counts[i]);
    }
    fullest = __reduce_max_sync(~0u, fullest);
    if (lane() == 0 && fullest > 0) atomicMax(&shared_.fullest, fullest);
    uint32_t before = SumOfThreadsBefore(sum);
#pragma unroll
    for (int i = 0; i < kBinsPerThread; ++i) {
      shared_.bins[threadIdx.x * kBinsPerThread + i] = before;
      if (before < k && k <= before + counts[i]) {
        shared_.cut_bin = threadIdx.x * kBinsPerThread + i;
        shared_.cut_before = before;
        shared_.cut_count = counts[i];
      }
      before += counts[i];
    }
    Sync();
  }

  __device__ uint32_t SumOfThreadsBefore(uint32_t mine) {
    const uint32_t inclusive = SumOfLanesUpTo(mine);
    uint32_t before = inclusive - mine;
    if constexpr (kWarps > 1) {
      if (lane() == 31) shared_.warp_sums[warp()] = inclusive;
      Sync();
      const uint32_t sum = lane() < kWarps ? shared_.warp_sums[lane()] : 0;
      before += __shfl_sync(~0u, SumOfLanesUpTo(sum) - sum, warp());
    }
    return before;
  }
  static __device__ uint32_t SumOfLanesUpTo(uint32_t sum) {
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, sum, lanes);
      if (lane() >= lanes) sum += other;
    }
    return sum;
  }

  // Several threads share the comparisons of a word where there are as many.
  __device__ Word* SortByRank(const Word* list, Word* sorted, uint32_t m) {
    constexpr uint32_t kShare = kThreads / kRankedAtMost;
    const uint32_t mine = threadIdx.x % kShare;
    const uint32_t i = threadIdx.x % kThreads / kShare;
    const Word word = i < m ? list[i] : 0;
    uint32_t place = 0;
#pragma unroll 4
    for (uint32_t other = mine; other < m; other += kShare) place += list[other] > word;
#pragma unroll
    for (uint32_t lanes = 1; lanes < kShare; lanes *= 2) place += __shfl_xor_sync(~0u, place, lanes);
    if (i < m && mine == 0) sorted[place] = word;
    Sync();
    return sorted;
  }

  // By one warp, in registers; the others wait.
  __device__ Word* SortByWarp(Word* list, uint32_t m) {
    if (threadIdx.x % kThreads < 32) {
      constexpr int kCount = kSortedByWarpAtMost / 32;
      Word words[kCount];
#pragma unroll
      for (int w = 0; w < kCount; ++w) words[w] = lane() * kCount + w < m ? list[lane() * kCount + w] : 0;
      SortLanes(words);
#pragma unroll
      for (int w = 0; w < kCount; ++w) {
        if (lane() * kCount + w < m) list[lane() * kCount + w] = words[w];
      }
    }
    Sync();
    return list;
  }

  // For what crowds in few bins.
  __device__ Word* SortByNetwork(Word* list, uint32_t m) {
    const uint32_t size = 1u << (32 - __clz(m - 1));
    for (uint32_t i = m + threadIdx.x; i < size; i += kThreads) list[i] = 0;
    for (uint32_t run = 2; run <= size; run *= 2) {
      for (uint32_t distance = run / 2; distance > 0; distance /= 2) {
        Sync();
        for (uint32_t i = threadIdx.x; i < size / 2; i += kThreads) {
          const uint32_t low = 2 * i - (i & (distance - 1));
          const uint32_t high = low + distance;
          const Word a = list[low];
          const Word b = list[high];
          if ((a < b) == ((low & run) == 0)) {
            list[low] = b;
            list[high] = a;
          }
        }
      }
    }
    Sync();
    return list;
  }

  Shared& shared_;
};

}  // namespace anydml
