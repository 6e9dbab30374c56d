// How a block selects from a long row, alone or together with other blocks that share it.
#pragma once

#include "ops/top_k/cuda/key_bounds.cuh"
#include "ops/top_k/cuda/row_meeting.cuh"
#include "ops/top_k/cuda/row_stages.cuh"
#include "ops/top_k/cuda/select.cuh"

namespace anydml {

// The maxima of many groups in the first stages give a bound for the K best. Elements that reach the bound
// are collected; whenever there are many more than K of them, the K-th best becomes the next bound. Blocks
// that share a row agree on bounds that enough elements of each block reach: a first one, and one when
// everything has been read. The last block to finish sorts everything that was collected.
template <int kBytes>
class LongRow {
 public:
  static constexpr int kThreads = 512;
  static constexpr int kUnderWay = 6;                        // vectors in flight per thread
  static constexpr int kVectors = kBytes == 1 ? 2 : 3;       // per stage
  static constexpr int kBatch = kBytes == 8 ? 1 : kVectors;  // processed together, as registers allow
  static constexpr int kStages = kUnderWay / kVectors;
  static constexpr uint32_t kCapacity = kBytes == 8 ? 2048 : 4096;  // words that a block collects
  static constexpr uint32_t kMaxK = kCapacity / 2;
  static constexpr uint32_t kMaxN = (1u << 31) - 4096;  // so that vectors after the last also have valid
                                                        // indices
  static constexpr uint32_t kFirstVectors = kUnderWay * kThreads;  // of the first stages

  using Key = UnsignedOf<kBytes>;
  using Word = WordFor<kBytes>;
  using Select = BlockSelect<LongWords<kBytes>, kThreads, 4 * kThreads>;
  using Bounds = KeyBounds<Key, kThreads>;
  using Teams = TeamBound<Word, kThreads>;
  using Stages = RowStages<kBytes, kThreads, kStages, kVectors>;
  using Meeting = RowMeeting<kBytes>;

  struct Shared {
    typename Select::Shared select;
    typename Bounds::Shared bounds;
    typename Teams::Shared teams;
    uint32_t place;
  };
  static constexpr uint32_t kDynamicBytes = Stages::kRingBytes + kCapacity * sizeof(Word);

  __device__ LongRow(Shared* shared, unsigned char* dynamic, const TopKSequences& all, uint64_t row)
      : shared_(*shared),
        select_(&shared->select, all.order),
        stages_(all, row, reinterpret_cast<uint4*>(dynamic)),
        all_(all),
        row_(row),
        order_(all.order),
        ring_(reinterpret_cast<Word*>(dynamic)),
        list_(reinterpret_cast<Word*>(dynamic + Stages::kRingBytes)),
        long_from_(min(max(4 * all.k, 256), kCapacity / 4 * 3)) {}

  // The maxima of `first_each` groups reach the first bound.
  __device__ void RunAlone(uint32_t first_each) {
    uint32_t m;
    // The first bound may be a guess and too high; the second cannot be.
    for (uint32_t each = first_each;; each = all_.k) {
      stages_.Take(0, 1);
      bound_ = FirstBound(each);
      CollectAll();
      m = select_.Collected();
      if (m >= all_.k) break;
      __syncthreads();  // visible to all threads
    }
    Finish(list_, m);
  }

  // `first_each` elements of each share reach the first bound, and `each` the one after everything was read.
  __device__ void RunTogether(uint32_t first_each, uint32_t each, const Meeting& meeting) {
    stages_.Take(meeting.share(), meeting.shares());
    bound_ = FirstBound(first_each);
    if (threadIdx.x == 0) {
      meeting.Open();
      meeting.Publish(Meeting::kFirst, bound_);
    }
    meeting.WaitForAllRows();
    bound_ = meeting.RangeOfPublished(Meeting::kFirst, &select_).worst;
    CollectAll();
    if (stages_.count() > kStages) RaiseTogether(meeting, each);
    Send(meeting);
    if (!meeting.Leave()) return;
    uint32_t m = meeting.count();
    if (m >= all_.k) {
      const Word* words = select_.CopyBest(meeting.collected(), &m, all_.k, list_, kCapacity);
      Finish(words, m);
    } else if (threadIdx.x == 0) {
      meeting.Fail();
    }
  }

 private:
  // A word that the maxima of `groups` groups in the first stages reach, and few others; 0 if there are fewer
  // groups.
  __device__ Word FirstBound(uint32_t groups) {
    Key maxima[kVectors];
    bool has[kVectors];  // whether the vector is whole
    stages_.template Wait<0>();
    DispatchByOrder<kBytes>(order_, [&]<BetterBy kBetterBy>() {
      using Best = PackedBest<kBytes, kBetterBy>;
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        auto best = Best::kWorst;
        has[i] = false;
#pragma unroll
        for (int stage = 0; stage < kStages; ++stage) {
          if (!stages_.HasWhole(stage, i)) continue;
          best = Best::Better(best, Best::Of(order_, stages_.At(stage, i)));
          has[i] = true;
        }
        maxima[i] = has[i] ? Best::KeyOf(order_, best) : 0;
      }
    });
    if (groups > kVectors * kThreads) return 0;
    if (groups > Teams::kMostGroups) {
      return Word{BoundByCounting<kBytes>(order_, &select_.sorting().bins(), &shared_.bounds, maxima, groups,
                                          groups + groups / 8 + 4)
                      .worst}
             << 32;
    }
    Word best = 0;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {  // the index of a group's last element stands for that of its best
      const int32_t last = stages_.FirstOf(kStages - 1, i) + KeyVector<kBytes>::kElements - 1;
      if (has[i]) best = Better(best, MakeWord<kBytes>(maxima[i], last));
    }
    return Teams::Of(&shared_.teams, best, groups);
  }

  // Raises the bound to one that enough of the words collected by all blocks reach.
  __device__ void RaiseTogether(const Meeting& meeting, uint32_t each) {
    const uint32_t m = select_.Collected();
    const auto words = [&](auto&& visit) { ForEach(list_, m, visit); };
    Word reached = 0;
    if (m >= each) reached = select_.Bound(words, select_.RangeOf(words), each, each + each / 8);
    if (threadIdx.x == 0) {
      meeting.Publish(Meeting::kLast, reached);
      meeting.Publish(Meeting::kOwn, bound_);
    }
    meeting.Wait();
    const Word of_all = meeting.RangeOfPublished(Meeting::kLast, &select_).worst;
    bound_ = Better(of_all, meeting.RangeOfPublished(Meeting::kOwn, &select_).best);
  }

  __device__ void CollectAll() {
    select_.StartCollecting();
    DispatchByOrder<kBytes>(order_, [&]<BetterBy kBetterBy>() {
      for (uint32_t stage = 0; stage < stages_.count(); ++stage) CollectStage<kBetterBy>(stage);
    });
  }

  template <BetterBy kBetterBy>
  __device__ void CollectStage(uint32_t stage) {
    KeyVector<kBytes> vectors[kBatch];
    bool is_long = false;
#pragma unroll 1
    for (int i = 0; i < kVectors; i += kBatch) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        stages_.template Wait<kUnderWay - 1>();
        vectors[b] = stages_.At(stage, i + b);
        stages_.Load(stage + kStages, i + b);
      }
      is_long |= Collect<kBetterBy>(vectors, stage, i);
    }
    while (__syncthreads_or(is_long) && RaiseBound(stage)) {
      is_long = false;
#pragma unroll 1
      for (int i = 0; i < kVectors; i += kBatch) {
        if constexpr (kBatch < kVectors)
          vectors[0] = stages_.Again(stage, i);  // otherwise they are still in
                                                 // registers
        is_long |= Collect<kBetterBy>(vectors, stage, i);
      }
    }
  }

  // The worst key with which an element of the vector reaches the bound, or false: among equal elements,
  // later ones do not.
  __device__ bool LeastKeyFrom(int32_t first, Key* least) const {
    const auto bound = static_cast<Key>(bound_ >> 32);
    const bool behind = first > static_cast<int32_t>(min(IndexOfWord(bound_), 0x7FFFFFFFu));
    *least = behind ? bound + 1 : bound;
    return !behind || *least != 0;
  }

  // Collects what reaches the bound in vectors from the i-th of a stage on; true if that makes the list long.
  template <BetterBy kBetterBy>
  __device__ bool Collect(const KeyVector<kBytes> (&vectors)[kBatch], uint32_t stage, int i) {
    using Best = PackedBest<kBytes, kBetterBy>;
    constexpr int kElements = KeyVector<kBytes>::kElements;
    uint32_t hits = 0;  // vectors that have one
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      Key least;
      const bool can_reach = stages_.Has(stage, i + b) && LeastKeyFrom(stages_.FirstOf(stage, i + b), &least);
      if (can_reach && Best::Reaches(order_, Best::Of(order_, vectors[b]), least)) hits |= 1u << b;
    }
    // Lanes with hits in different vectors process them at the same time.
    bool is_long = false;
    for (; hits != 0; hits &= hits - 1) {
      const int hit = __ffs(hits) - 1;
      KeyVector<kBytes> keys = vectors[0];
#pragma unroll
      for (int b = 1; b < kBatch; ++b) {
        if (b == hit) keys = vectors[b];
      }
      ElementsToKeys(order_, &keys);
      const int32_t first = stages_.FirstOf(stage, i + hit);
      Key least;
      LeastKeyFrom(first, &least);
      uint32_t reaching = 0;
#pragma unroll
      for (int e = 0; e < kElements; ++e) reaching |= keys[e] >= least ? 1u << e : 0;
      if (first < 0) reaching &= ~0u << -first;  // elements outside the row
      if (first + kElements > all_.n) reaching &= (1u << (all_.n - first)) - 1;
      uint32_t place = select_.Reserve(__popc(reaching));
      for (; reaching != 0; reaching &= reaching - 1) {  // nearly always one
        const int e = __ffs(reaching) - 1;
        if (place < kCapacity) list_[place] = MakeWord<kBytes>(keys.Select(e), first + e);
        ++place;
      }
      is_long |= place > long_from_;
    }
    return is_long;
  }

  // Makes the K-th best of the list the bound, and removes worse ones. True if something of this stage did
  // not fit: all of it is removed, to be collected again.
  __device__ bool RaiseBound(uint32_t stage) {
    const uint32_t found = select_.Collected();
    __syncthreads();  // visible to all threads
    const uint32_t m = min(found, kCapacity);
    const auto words = [&](auto&& visit) { ForEach(list_, m, visit); };
    bound_ = select_.Bound(words, select_.RangeOf(words), all_.k, all_.k + all_.k / 8 + 4);
    select_.StartCollecting();
    for (uint32_t begin = 0; begin < m; begin += kThreads) {
      const uint32_t i = begin + threadIdx.x;
      const Word word = i < m ? list_[i] : 0;
      const bool again = found > m && stages_.StageOf(IndexOfWord(word)) == stage;
      __syncthreads();  // what is overwritten has been read
      if (i < m && word >= bound_ && !again) select_.Add(word, list_, kCapacity);
    }
    __syncthreads();
    return found > m;
  }

  // Appends the words that reach the bound to those of all blocks.
  __device__ void Send(const Meeting& meeting) {
    const uint32_t found = select_.Collected();
    __syncthreads();  // visible to all threads, and the stages' memory is free
    const uint32_t m =
        select_.Collect([&](auto&& visit) { ForEach(list_, found, visit); }, bound_, ring_, kCapacity);
    if (threadIdx.x == 0) shared_.place = meeting.Reserve(m);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) meeting.collected()[shared_.place + i] = ring_[i];
  }

  // Writes the K best of m words to the outputs.
  __device__ void Finish(const Word* words, uint32_t m) {
    // The stages are complete, so their memory is free.
    const Word* sorted = select_.SelectAndSort(words, m, all_.k, list_, ring_, kCapacity);
    const CudaSequence<kBytes> sequence(all_, row_);
    for (uint32_t j = threadIdx.x; j < all_.k; j += kThreads) sequence.Store(j, sorted[j]);
  }

  template <typename Visit>
  static __device__ void ForEach(const Word* words, uint32_t m, Visit&& visit) {
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) visit(words[i]);
  }

  Shared& shared_;
  Select select_;
  Stages stages_;
  const TopKSequences& all_;
  uint64_t row_;
  KeyOrder order_;
  Word* ring_;  // also the memory of the stages
  Word* list_;
  uint32_t long_from_;  // words
  Word bound_ = 0;
};

}  // namespace anydml
