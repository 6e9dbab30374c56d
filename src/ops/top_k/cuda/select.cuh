// A block's work on the candidates of one sequence: bounds the K best, collects what reaches the bound, sorts
// it.
#pragma once

#include "ops/top_k/cuda/block_sort.cuh"

namespace anydml {

// Functions of a whole block (or of one warp, if that is kThreads): every thread calls them with the same
// arguments.
template <typename Words, int kThreads, int kBins>
class BlockSelect {
 public:
  using Word = typename Words::Word;
  using Range = WordRange<Word>;
  using Sorting = BlockSort<Words, kThreads, kBins>;
  static constexpr int kWarps = kThreads / 32;

  struct Shared {
    typename Sorting::Shared sorting;
    Word minima[kWarps], maxima[kWarps];
    uint32_t collected;
  };

  __device__ BlockSelect(Shared* shared, const KeyOrder& order)
      : shared_(*shared), sorting_(&shared->sorting, order) {}

  __device__ Sorting& sorting() { return sorting_; }

  // The worst and the best word. `for_each(visit)` calls visit(word) for every word of this thread, here and
  // below.
  template <typename ForEach>
  __device__ Range RangeOf(ForEach&& for_each) {
    Range range{~Word{0}, Word{0}};
    for_each([&](Word word) { range = {Worse(range.worst, word), Better(range.best, word)}; });
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) range = Join(range, Exchanged(range, lanes));
    if constexpr (kWarps > 1) {
      if (Bins::lane() == 0) {
        shared_.minima[Bins::warp()] = range.worst;
        shared_.maxima[Bins::warp()] = range.best;
      }
      Sync();
      range = {shared_.minima[Bins::lane() % kWarps], shared_.maxima[Bins::lane() % kWarps]};
#pragma unroll
      for (int lanes = kWarps / 2; lanes > 0; lanes /= 2) range = Join(range, Exchanged(range, lanes));
      Sync();
    }
    return range;
  }

  // A word that at least k and at most `limit` (k or more) of the words reach.
  template <typename ForEach>
  __device__ Word Bound(ForEach&& for_each, Range range, uint32_t k, uint32_t limit) {
    Bins& bins = sorting_.bins();
    uint32_t better = 0;  // than range.best; they reach the bound anyway
    while (true) {
      const int shift = Sorting::ShiftOf(range);
      bins.Clear();
      Sync();
      for_each([&](Word word) {
        if (word >= range.worst && word <= range.best) bins.Add(Sorting::BinOf(word, range, shift));
      });
      Sync();
      const typename Bins::Cut cut = bins.FindCut(k - better, ~0u);
      const Word best = range.best - (Word{cut.bin} << shift);  // in the k-th's bin
      const Word width = (Word{1} << shift) - 1;
      const Word worst = best - range.worst > width ? best - width : range.worst;
      const uint32_t reaching = better + cut.before + cut.count;
      better += cut.before;
      if (reaching <= limit || shift == 0) return worst;
      range = {worst, best};
    }
  }

  // Copies the words that reach `bound` to list, as far as they fit; returns their number.
  template <typename ForEach>
  __device__ uint32_t Collect(ForEach&& for_each, Word bound, Word* list, uint32_t capacity) {
    StartCollecting();
    for_each([&](Word word) {
      if (word >= bound) Add(word, list, capacity);
    });
    return Collected();
  }

  // The same in steps: StartCollecting, Add or Reserve, Collected.
  __device__ void StartCollecting() {
    if (threadIdx.x == 0) shared_.collected = 0;
    Sync();
  }
  // Returns the word's place; from `capacity` on it does not fit.
  __device__ uint32_t Add(Word word, Word* list, uint32_t capacity) {
    const uint32_t place = atomicAdd(&shared_.collected, 1);
    if (place < capacity) list[place] = word;
    return place;
  }
  // Reserves places for some words; returns the first.
  __device__ uint32_t Reserve(uint32_t words) { return atomicAdd(&shared_.collected, words); }
  __device__ uint32_t Collected() {
    Sync();
    return shared_.collected;
  }

  // Copies m words to list, which is faster to read several times; if they do not fit, only those that reach
  // a bound found from a sample. Returns the place of the k best (`words` if the copy fails) and sets `m` to
  // the number of words there.
  __device__ const Word* CopyBest(const Word* words, uint32_t* m, uint32_t k, Word* list, uint32_t capacity) {
    constexpr uint32_t kSamples = 4 * kThreads;
    if (*m <= capacity) {
#pragma unroll 4
      for (uint32_t i = threadIdx.x; i < *m; i += kThreads) list[i] = words[i];
      Sync();
      return list;
    }
    Word sample[kSamples / kThreads];
#pragma unroll
    for (uint32_t i = 0; i < kSamples / kThreads; ++i) {
      sample[i] = words[uint64_t{*m} * (i * kThreads + threadIdx.x) / kSamples];
    }
    const auto sampled = [&](auto&& visit) {
#pragma unroll
      for (const Word word : sample) visit(word);
    };
    // The K best have that many samples above them, plus or minus six deviations.
    const float mean = static_cast<float>(k) * kSamples / *m;
    const auto rank = static_cast<uint32_t>(mean + 6 * sqrtf(mean)) + 8;
    if (rank >= kSamples) return words;  // too many are wanted
    const Word bound = Bound(sampled, RangeOf(sampled), rank, rank + rank / 4);
    const auto all = [&](auto&& visit) {
#pragma unroll 8
      for (uint32_t i = threadIdx.x; i < *m; i += kThreads) visit(words[i]);
    };
    const uint32_t found = Collect(all, bound, list, capacity);
    Sync();  // visible to all threads
    if (found > capacity || found < k) return words;
    *m = found;
    return list;
  }

  // The sorted K best of any number of words, in list or spare (of `capacity` at least k); returns the place.
  // The words may be in `spare`.
  template <typename ForEach>
  __device__ Word* SelectAndSort(ForEach&& for_each, uint32_t k, Word* list, Word* spare, uint32_t capacity) {
    const Range range = RangeOf(for_each);
    if (Word* sorted = sorting_.SelectByBins(for_each, range, k, spare, list, capacity)) return sorted;
    return SelectByWords(for_each, range, k, list, spare, capacity);
  }

  // The same for m words that may be in `list`.
  __device__ Word* SelectAndSort(const Word* words, uint32_t m, uint32_t k, Word* list, Word* spare,
                                 uint32_t capacity) {
    if (words == list && m <= Sorting::kRankedAtMost) return sorting_.Sort(list, spare, m, {});
    const auto for_each = [&](auto&& visit) {
      for (uint32_t i = threadIdx.x; i < m; i += kThreads) visit(words[i]);
    };
    return SelectAndSort(for_each, k, spare, list, capacity);
  }

  // The same for words in `range`, many of which are close to each other.
  template <typename ForEach>
  __device__ Word* SelectByWords(ForEach&& for_each, Range range, uint32_t k, Word* list, Word* spare,
                                 uint32_t capacity) {
    range.worst = Bound(for_each, range, k, min(capacity, k + k / 2 + 64));
    const uint32_t m = Collect(for_each, range.worst, list, capacity);
    return sorting_.Sort(list, spare, m, range);
  }

  // The sum of every thread's number.
  __device__ uint32_t SumOfThreads(uint32_t mine) {
    const uint32_t before = sorting_.bins().SumBefore(mine);
    if (threadIdx.x == kThreads - 1) shared_.collected = before + mine;
    Sync();
    const uint32_t sum = shared_.collected;
    Sync();
    return sum;
  }

 private:
  using Bins = typename Sorting::Bins;

  static __device__ void Sync() { Bins::Sync(); }
  static __device__ Range Join(Range a, Range b) { return {Worse(a.worst, b.worst), Better(a.best, b.best)}; }
  static __device__ Range Exchanged(Range range, int lanes) {
    return {ShuffleXor(range.worst, lanes), ShuffleXor(range.best, lanes)};
  }

  Shared& shared_;
  Sorting sorting_;
};

}  // namespace anydml
