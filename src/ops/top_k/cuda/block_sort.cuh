// Sorts words, by a block.
//
// Except for a few words, the order comes from counting in bins. Words are distinct, so narrower bins
// separate whatever crowds in one: equal elements, and a few outliers that make the range wide, only cost
// another round.
#pragma once

#include "ops/top_k/cuda/bins.cuh"
#include "ops/top_k/cuda/key_spread.cuh"
#include "ops/top_k/cuda/words.cuh"

namespace anydml {

// Sorts a warp's words in descending order, those of a lane side by side, with a bitonic network.
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

// Functions of a whole block (or of one warp, if that is kThreads): every thread calls them with the same
// arguments. `Words` defines how keys and indices form words.
template <typename Words, int kThreads, int kBins>
class BlockSort {
 public:
  using Word = typename Words::Word;
  using Range = WordRange<Word>;
  using Bins = BlockBins<kThreads, kBins>;

  struct Shared {
    typename Bins::Shared bins;
    uint32_t coarse[kBins];
  };

  __device__ BlockSort(Shared* shared, const KeyOrder& order)
      : shared_(*shared), order_(order), bins_(&shared->bins) {}

  __device__ Bins& bins() { return bins_; }

  // Sorts list[0, m), whose words are in `range`, in descending order; `spare` is as long, and the length of
  // both is a power of two. Returns the place of the result.
  __device__ Word* Sort(Word* list, Word* spare, uint32_t m, Range range) {
    if (m <= kRankedAtMost) return SortByRank(list, spare, m);
    if (m <= kSortedByWarpAtMost) return SortByWarp(list, m);
    const auto words = [&](auto&& visit) {
      for (uint32_t i = threadIdx.x; i < m; i += kThreads) visit(list[i]);
    };
    if constexpr (kThreads > 32) {
      if (Word* sorted = SelectByBins(words, range, m, list, spare, m)) return sorted;
    }
    // Bins of words, not of keys, so that equal keys are separated, too.
    const int shift = ShiftOf(range);
    const auto bin_of = [&](Word word) { return BinOf(word, range, shift); };
    if (Word* sorted = SelectByBins(words, bin_of, m, list, spare, m, kFullestBin)) return sorted;
      // Divides the bins again, each into as many as it has words.
#pragma unroll
    for (int i = 0; i < kBins / kThreads; ++i) {
      shared_.coarse[i * kThreads + threadIdx.x] = bins_.At(i * kThreads + threadIdx.x);
    }
    Sync();
    const uint32_t scale = (kBins << 16) / m;
    const auto fine_bin_of = [&](Word word) {
      const Word offset = range.best - word;
      const auto bin = static_cast<uint32_t>(offset >> shift);
      const auto within = static_cast<uint32_t>(shift < 16 ? offset << (16 - shift) : offset >> (shift - 16));
      const uint32_t begin = shared_.coarse[bin];
      const uint32_t end = bin + 1 < kBins ? shared_.coarse[bin + 1] : m;
      const uint32_t place = begin + ((end - begin) * (within & 0xFFFF) >> 16);
      return min(static_cast<uint32_t>(uint64_t{place} * scale >> 16), kBins - 1);
    };
    if (Word* sorted = SelectByBins(words, fine_bin_of, m, list, spare, m, 2 * kFullestBin)) return sorted;
    return SortByNetwork(list, m);
  }

  // Sorts the k best of the words, all in `range`, into `sorted`, by way of `list`, which has room for
  // `room`; null if they are too crowded for that. `for_each(visit)` calls visit(word) for every word of this
  // thread. It may read from `sorted`, which is written last.
  template <typename ForEach>
  __device__ Word* SelectByBins(ForEach&& for_each, Range range, uint32_t k, Word* sorted, Word* list,
                                uint32_t room) {
    return DispatchBySpread<Words::kKeyBytes>(order_, [&]<bool kByValue>() {
      const KeySpread<Words::kKeyBytes, kBins, kByValue> spread(order_, Words::KeyOf(range.worst),
                                                                Words::KeyOf(range.best));
      const auto bin_of = [&](Word word) { return spread.BinOf(Words::KeyOf(word)); };
      return SelectByBins(for_each, bin_of, k, sorted, list, room, kFullestBin);
    });
  }

  // Comparing all with all is fastest, up to a number at which it slows down other blocks.
  static constexpr uint32_t kRankedAtMost = kThreads >= 256 ? 128 : 32;

  static constexpr uint32_t kFullestBin = 32;  // beyond, comparing within bins becomes slow

  // Bin 0 is the best one; bins are 2^shift wide.
  static __device__ int ShiftOf(Range range) {
    return max(0, BitWidth(static_cast<Word>(range.best - range.worst)) - (31 - __clz(kBins)));
  }
  static __device__ uint32_t BinOf(Word word, Range range, int shift) {
    return static_cast<uint32_t>((range.best - word) >> shift);
  }

 private:
  static constexpr uint32_t kSortedByWarpAtMost = 128;

  static __device__ void Sync() { Bins::Sync(); }

  template <typename ForEach, typename BinOf>
  __device__ Word* SelectByBins(ForEach&& for_each, BinOf&& bin_of, uint32_t k, Word* sorted, Word* list,
                                uint32_t room, uint32_t most) {
    bins_.Clear();
    Sync();
    for_each([&](Word word) { bins_.Add(bin_of(word)); });
    Sync();
    const typename Bins::Cut cut = bins_.FindCut(k, most);
    const uint32_t m = cut.before + cut.count;
    if (cut.crowded || m > room) return nullptr;
    for_each([&](Word word) {
      const uint32_t bin = bin_of(word);
      if (bin <= cut.bin) list[bins_.Add(bin)] = word;
    });
    Sync();
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) {
      const Word word = list[i];
      const uint32_t bin = bin_of(word);
      const uint32_t begin = bin == 0 ? 0 : bins_.At(bin - 1);  // by now, the end of the previous bin
      const uint32_t end = bins_.At(bin);
      uint32_t place = begin;
      for (uint32_t other = begin; other < end; ++other) place += list[other] > word;
      sorted[place] = word;
    }
    Sync();
    return sorted;
  }

  // Several threads share the comparisons of a word if there are enough.
  __device__ Word* SortByRank(const Word* list, Word* sorted, uint32_t m) {
    constexpr uint32_t kShare = kThreads / kRankedAtMost;
    const uint32_t mine = threadIdx.x % kShare;
    const uint32_t i = threadIdx.x / kShare;
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
    if (threadIdx.x < 32) {
      constexpr int kCount = kSortedByWarpAtMost / 32;
      const uint32_t first = threadIdx.x * kCount;
      Word words[kCount];
#pragma unroll
      for (int w = 0; w < kCount; ++w) words[w] = first + w < m ? list[first + w] : 0;
      SortLanes(words);
#pragma unroll
      for (int w = 0; w < kCount; ++w) {
        if (first + w < m) list[first + w] = words[w];
      }
    }
    Sync();
    return list;
  }

  // For words that crowd in few bins.
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
  KeyOrder order_;
  Bins bins_;
};

}  // namespace anydml
