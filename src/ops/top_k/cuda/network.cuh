// Sorting networks over registers of one thread, unrolled and branch-free.
#pragma once

namespace anydml {

template <typename Word>
__device__ void PutInOrder(Word& better, Word& worse) {
  const Word a = better;
  if constexpr (sizeof(Word) == 4) {
    better = max(a, worse);
    worse = min(a, worse);
  } else {
    const bool swap = a < worse;
    better = swap ? worse : a;
    worse = swap ? a : worse;
  }
}

// Steps are template parameters, not loops: an index unknown at compile time would put the words into local
// memory.

// Batcher's odd-even merge sort; the better word first.
template <int kRun = 1, int kDistance = kRun, int kCount, typename Word>
__device__ void SortDescending(Word (&words)[kCount]) {
  constexpr int kFirst = kDistance % kRun;
#pragma unroll
  for (int i = kFirst; i + kDistance < kCount; ++i) {
    const bool same_run = i / (2 * kRun) == (i + kDistance) / (2 * kRun);
    if ((i - kFirst) % (2 * kDistance) < kDistance && same_run) PutInOrder(words[i], words[i + kDistance]);
  }
  if constexpr (kDistance > 1) {
    SortDescending<kRun, kDistance / 2>(words);
  } else if constexpr (2 * kRun < kCount) {
    SortDescending<2 * kRun>(words);
  }
}

template <int kDistance, int kCount, typename Word>
__device__ void SortBitonic(Word (&words)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if ((i & kDistance) == 0) PutInOrder(words[i], words[i + kDistance]);
  }
  if constexpr (kDistance > 1) SortBitonic<kDistance / 2>(words);
}

// Makes `best` the best of both, sorted; both come in descending order. Calls reject(word) for each word that
// is not among them.
template <int kCount, typename Word, typename Reject>
__device__ void KeepBest(Word (&best)[kCount], const Word (&more)[kCount], Reject&& reject) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    Word other = more[kCount - 1 - i];
    PutInOrder(best[i], other);
    reject(other);
  }
  SortBitonic<kCount / 2>(best);
}
template <int kCount, typename Word>
__device__ void KeepBest(Word (&best)[kCount], const Word (&more)[kCount]) {
  KeepBest(best, more, [](Word) {});
}

}  // namespace anydml
