// A contiguous sequence in the shared memory of a block, and what a thread knows about its part of it.
//
// Loads to shared memory occupy no registers, so many blocks can have loads in flight.
#pragma once

#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {

// Thread t has up to kVectors vectors, t, t + kThreads...: neighbours of a sorted sequence are in different
// groups. Threads access only their own vectors, so loading needs no barrier.
template <int kBytes, int kThreads, int kVectors>
class SharedRow {
 public:
  using Key = UnsignedOf<kBytes>;
  using Words = ShortWords<kBytes>;
  using Vector = KeyVector<kBytes>;

  // The longest sequence whose indices fit.
  static constexpr uint32_t kMaxVectors = kThreads * kVectors;
  static_assert(uint64_t{kMaxVectors} * Vector::kElements <= uint64_t{Words::kIndexMask} + 1);

  __device__ SharedRow(const CudaSequence<kBytes>& sequence, uint4* vectors)
      : order_(sequence.order()),
        vectors_(vectors),
        count_(sequence.vectors()),
        n_(sequence.n()),
        first_(static_cast<int32_t>(sequence.FirstOf(0))) {
    const uint32_t readable = sequence.readable_vectors();
    const uint4* from = sequence.AddressOfVector(threadIdx.x);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      if (VectorOf(i) < readable) CopyAsync(&vectors_[VectorOf(i)], from + i * kThreads);
    }
    if (readable < count_ && IsOwn(readable)) vectors_[readable] = sequence.LoadLast(readable);
    asm volatile("cp.async.wait_all;" ::: "memory");
    ReplaceOutside(sequence, 0);
    ReplaceOutside(sequence, count_ - 1);
    DispatchByOrder<kBytes>(order_, [&]<BetterBy kBetterBy>() {
      using Best = PackedBest<kBytes, kBetterBy>;
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        maxima_[i] = VectorOf(i) < count_ ? Best::Of(order_, At(VectorOf(i))) : Best::kWorst;
      }
    });
  }

  __device__ uint32_t n() const { return n_; }

  // The best keys of kGroups groups of this thread's vectors.
  template <int kGroups>
  __device__ void MaximaOfGroups(Key (&keys)[kGroups]) const {
    DispatchByOrder<kBytes>(order_, [&]<BetterBy kBetterBy>() {
      using Best = PackedBest<kBytes, kBetterBy>;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        auto best = Best::kWorst;
#pragma unroll
        for (int i = group; i < kVectors; i += kGroups) best = Best::Better(best, maxima_[i]);
        keys[group] = Best::KeyOf(order_, best);
      }
    });
  }

  // Calls visit(word) for every element of this thread.
  template <typename Visit>
  __device__ void ForEachWord(Visit&& visit) const {
    ForEachWordIn(Below(count_), visit);
  }

  // The same for those vectors that have an element whose key is at least `least`.
  template <typename Visit>
  __device__ void ForEachWordBeside(Key least, Visit&& visit) const {
    ForEachWordIn(Reaching(least) & Below(count_), visit);
  }

  // The same for those elements themselves, up to `last_index`; lanes with hits in different vectors process
  // them at the same time.
  template <typename Visit>
  __device__ void ForEachWordFrom(Key least, uint32_t last_index, Visit&& visit) const {
    const uint32_t end = min(count_, (min(last_index, n_) - first_) / Vector::kElements + 1);
    for (uint32_t hits = Reaching(least) & Below(end); hits != 0; hits &= hits - 1) {
      const uint32_t v = VectorOf(__ffs(hits) - 1);
      Vector keys = At(v);
      ElementsToKeys(order_, &keys);
      uint32_t reaching = 0;
#pragma unroll
      for (int e = 0; e < Vector::kElements; ++e) reaching |= keys[e] >= least ? 1u << e : 0;
      for (; reaching != 0; reaching &= reaching - 1) {
        const int e = __ffs(reaching) - 1;
        const Key element = reinterpret_cast<const Key*>(&vectors_[v])[e];
        if (IndexOf(v, e) < n_) visit(Words::Make(ElementToKey<kBytes>(order_, element), IndexOf(v, e)));
      }
    }
  }

 private:
  __device__ void ReplaceOutside(const CudaSequence<kBytes>& sequence, uint32_t v) {
    if (!IsOwn(v) || sequence.IsWhole(v)) return;
    Vector vector = At(v);
    sequence.ReplaceOutside(v, &vector, WorstElement<kBytes>(order_));
    vectors_[v] = make_uint4(vector.words[0], vector.words[1], vector.words[2], vector.words[3]);
  }
  __device__ Vector At(uint32_t v) const {
    const uint4 loaded = vectors_[v];
    return {{loaded.x, loaded.y, loaded.z, loaded.w}};
  }
  static __device__ bool IsOwn(uint32_t v) { return v % kThreads == threadIdx.x; }
  static __device__ uint32_t VectorOf(int i) { return threadIdx.x + i * kThreads; }
  __device__ uint32_t IndexOf(uint32_t v, int e) const { return first_ + v * Vector::kElements + e; }

  // Sets of this thread's vectors, a bit for each.
  static __device__ uint32_t Below(uint32_t end) {
    return end > threadIdx.x ? (2u << (end - 1 - threadIdx.x) / kThreads) - 1 : 0;
  }
  __device__ uint32_t Reaching(Key least) const {
    return DispatchByOrder<kBytes>(order_, [&]<BetterBy kBetterBy>() {
      uint32_t set = 0;
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        set |= PackedBest<kBytes, kBetterBy>::Reaches(order_, maxima_[i], least) ? 1u << i : 0;
      }
      return set;
    });
  }

  template <typename Visit>
  __device__ void ForEachWordIn(uint32_t set, Visit&& visit) const {
#pragma unroll 1
    for (; set != 0; set &= set - 1) {
      const uint32_t v = VectorOf(__ffs(set) - 1);
      Vector keys = At(v);
      ElementsToKeys(order_, &keys);
#pragma unroll
      for (int e = 0; e < Vector::kElements; ++e) {
        if (IndexOf(v, e) < n_) visit(Words::Make(keys[e], IndexOf(v, e)));
      }
    }
  }

  KeyOrder order_;
  uint4* vectors_;
  uint32_t count_;
  uint32_t n_;
  int32_t first_;  // element of the first vector
  typename PackedBest<kBytes, BetterBy::kKey>::Packed maxima_[kVectors];
};

}  // namespace anydml
