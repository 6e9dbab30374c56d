// cuda.long_rows: rows that no shared memory holds, as many as blocks fit on the device or more; each block
// reads one, once.
//
// The K-th best of many groups' bests in the first part bounds the K best of all. What reaches the bound is
// collected; whenever that is much more than K, the K-th best of it is the next bound.
#include "ops/top_k/cuda_key_bounds.cuh"
#include "ops/top_k/cuda_launch.h"
#include "ops/top_k/cuda_select.cuh"
#include "ops/top_k/cuda_sequences.cuh"
#include "ops/module.h"

namespace anydml {
namespace {

constexpr int kThreads = 512;
constexpr int kStages = 2;    // in shared memory
constexpr int kPerStage = 3;  // vectors per thread
constexpr uint32_t kRingBytes = kStages * kPerStage * kThreads * 16;

template <int kBytes>
constexpr uint32_t kCapacity = kBytes == 8 ? 2048 : 4096;  // words that are collected
template <int kBytes>
constexpr uint32_t kMaxK = kCapacity<kBytes> / 4;

// Stages of a row on their way through shared memory. Every warp goes through a part of its own, so that a
// stage has something of everywhere, whatever the row's order is. Threads see only their own vectors.
template <int kBytes>
class RowStages {
 public:
  using Vector = KeyVector<kBytes>;

  __device__ RowStages(const CudaSequence<kBytes>& sequence, uint4* slots)
      : sequence_(sequence),
        slots_(slots + threadIdx.x),
        vectors_(sequence.vectors()),
        readable_(sequence.readable_vectors()),
        count_((vectors_ - 1) / (kThreads * kPerStage) + 1),
        first_(static_cast<int32_t>(sequence.FirstOf(0))) {}

  __device__ const CudaSequence<kBytes>& sequence() const { return sequence_; }
  __device__ uint32_t count() const { return count_; }
  __device__ bool Has(uint32_t stage, int i) const { return NumberOf(stage, i) < vectors_; }
  __device__ int32_t FirstOf(uint32_t stage, int i) const {
    return static_cast<int32_t>(NumberOf(stage, i) * Vector::kElements) + first_;
  }
  __device__ uint32_t StageOf(uint32_t index) const {
    return (index - first_) / (Vector::kElements * 32 * kPerStage) % count_;
  }

  // Begins to load a stage, or nothing behind the last one.
  __device__ void Load(uint32_t stage) {
#pragma unroll
    for (int i = 0; i < kPerStage; ++i) {
      const uint32_t v = NumberOf(stage, i);
      if (stage < count_ && v < readable_) CopyAsync(&Slot(stage, i), sequence_.AddressOfVector(v));
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  // Waits until no more than kUnderWay stages are, then completes this one.
  template <int kUnderWay>
  __device__ void Finish(uint32_t stage) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kUnderWay) : "memory");
#pragma unroll
    for (int i = 0; i < kPerStage; ++i) {
      const uint32_t v = NumberOf(stage, i);
      if (v != 0 && v != vectors_ - 1) continue;
      if (v >= readable_) Slot(stage, i) = sequence_.LoadLast(v);
      if (sequence_.IsWhole(v)) continue;
      Vector vector = At(stage, i);
      sequence_.ReplaceOutside(v, &vector, WorstElement<kBytes>(sequence_.order()));
      Slot(stage, i) = make_uint4(vector.words[0], vector.words[1], vector.words[2], vector.words[3]);
    }
  }
  __device__ Vector At(uint32_t stage, int i) const {
    const uint4 loaded = Slot(stage, i);
    return {{loaded.x, loaded.y, loaded.z, loaded.w}};
  }

 private:
  __device__ uint32_t NumberOf(uint32_t stage, int i) const {
    return ((threadIdx.x / 32 * count_ + stage) * kPerStage + i) * 32 + threadIdx.x % 32;
  }
  __device__ uint4& Slot(uint32_t stage, int i) const {
    return slots_[(stage % kStages * kPerStage + i) * kThreads];
  }

  CudaSequence<kBytes> sequence_;
  uint4* slots_;
  uint32_t vectors_;
  uint32_t readable_;
  uint32_t count_;
  int32_t first_;  // element of the first vector
};

// One row's way through a block.
template <int kBytes>
class LongRow {
 public:
  using Key = UnsignedOf<kBytes>;
  using Word = WordFor<kBytes>;
  using Select = BlockSelect<LongWords<kBytes>, kThreads, 4 * kThreads>;
  using Bounds = KeyBounds<Key, kThreads>;

  struct Shared {
    typename Select::Shared select;
    typename Bounds::Shared bounds;
  };

  // `ring`: kRingBytes; `list`: kCapacity words.
  __device__ LongRow(Shared* shared, uint4* ring, Word* list, const CudaSequences& all)
      : shared_(*shared),
        select_(&shared->select, all.order),
        stages_(CudaSequence<kBytes>(all, blockIdx.x), ring),
        all_(all),
        order_(all.order),
        ring_(ring),
        list_(list),
        long_from_(min(max(4 * all.k, 256), kCapacity<kBytes> / 4 * 3)) {}

  __device__ void Run() {
    for (uint32_t stage = 0; stage < kStages; ++stage) stages_.Load(stage);
    select_.StartCollecting();
    DispatchByOrder<kBytes>(order_, [&]<BetterBy kBetterBy>() { CollectAll<kBetterBy>(); });
    const uint32_t m = select_.Collected();
    // The stages are through; their memory is free.
    const Word* sorted = select_.SelectAndSort([&](auto&& visit) { ForEach(m, visit); }, all_.k,
                                               reinterpret_cast<Word*>(ring_), list_, kCapacity<kBytes>);
    for (uint32_t j = threadIdx.x; j < all_.k; j += kThreads) stages_.sequence().Store(j, sorted[j]);
  }

 private:
  template <BetterBy kBetterBy>
  __device__ void CollectAll() {
    using Best = PackedBest<kBytes, kBetterBy>;
    Key bests[kPerStage];
    stages_.template Finish<0>(0);
    stages_.template Finish<0>(1);
#pragma unroll
    for (int i = 0; i < kPerStage; ++i) {
      const auto best = Best::Of(order_, stages_.At(0, i));
      const auto other = stages_.Has(1, i) ? Best::Of(order_, stages_.At(1, i)) : Best::kWorst;
      bests[i] = stages_.Has(0, i) ? Best::KeyOf(order_, Best::Better(best, other)) : 0;
    }
    const KeyBound<Key> first = BoundByCounting<kBytes>(order_, &select_.sorting().bins(), &shared_.bounds,
                                                        bests, all_.k, all_.k + all_.k / 8 + 4);
    bound_ = Word{first.worst} << 32;
    for (uint32_t stage = 0; stage < stages_.count(); ++stage) {
      if (stage >= kStages) stages_.template Finish<kStages - 1>(stage);
      while (__syncthreads_or(Collect<kBetterBy>(stage))) {
        if (!RaiseBound(stage)) break;
      }
      stages_.Load(stage + kStages);
    }
  }

  // Collects what reaches the bound in a stage; true when that makes the list long.
  template <BetterBy kBetterBy>
  __device__ bool Collect(uint32_t stage) {
    using Best = PackedBest<kBytes, kBetterBy>;
    constexpr int kElements = KeyVector<kBytes>::kElements;
    constexpr Key kTop = static_cast<Key>(~Key{0});
    const auto bound = static_cast<Key>(bound_ >> 32);
    const auto last_index = static_cast<int32_t>(min(IndexOfWord(bound_), 0x7FFFFFFFu));
    bool is_long = false;
#pragma unroll 1
    for (int i = 0; i < kPerStage; ++i) {
      const int32_t first = stages_.FirstOf(stage, i);
      // Of equal elements, those that are behind do not reach it.
      const bool behind = first > last_index;
      const Key least = behind ? bound + 1 : bound;
      if (!stages_.Has(stage, i) || (behind && bound == kTop)) continue;
      KeyVector<kBytes> vector = stages_.At(stage, i);
      if (!Best::Reaches(order_, Best::Of(order_, vector), least)) continue;
      ElementsToKeys(order_, &vector);
      uint32_t reaching = 0;
#pragma unroll
      for (int e = 0; e < kElements; ++e) reaching |= vector[e] >= least ? 1u << e : 0;
      if (first < 0) reaching &= ~0u << -first;  // what is outside of the row
      if (first + kElements > all_.n) reaching &= (1u << (all_.n - first)) - 1;
      uint32_t place = select_.Reserve(__popc(reaching));
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        if ((reaching >> e & 1) == 0) continue;
        if (place < kCapacity<kBytes>) list_[place] = MakeWord<kBytes>(vector[e], first + e);
        ++place;
      }
      is_long |= place > long_from_;
    }
    return is_long;
  }

  // Makes the K-th best of the list the bound, and removes what is worse. True when something of this stage
  // did not fit: all of it is removed, to be collected again.
  __device__ bool RaiseBound(uint32_t stage) {
    const uint32_t found = select_.Collected();
    const uint32_t m = min(found, kCapacity<kBytes>);
    const auto words = [&](auto&& visit) { ForEach(m, visit); };
    bound_ = select_.Bound(words, select_.RangeOf(words), all_.k, all_.k + all_.k / 8 + 4);
    select_.StartCollecting();
    for (uint32_t begin = 0; begin < m; begin += kThreads) {
      const uint32_t i = begin + threadIdx.x;
      const Word word = i < m ? list_[i] : 0;
      const bool again = found > m && stages_.StageOf(IndexOfWord(word)) == stage;
      __syncthreads();  // what is overwritten has been read
      if (i < m && word >= bound_ && !again) select_.Add(word, list_, kCapacity<kBytes>);
    }
    __syncthreads();
    return found > m;
  }

  template <typename Visit>
  __device__ void ForEach(uint32_t m, Visit&& visit) const {
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) visit(list_[i]);
  }

  Shared& shared_;
  Select select_;
  RowStages<kBytes> stages_;
  const CudaSequences& all_;
  KeyOrder order_;
  uint4* ring_;
  Word* list_;
  uint32_t long_from_;  // words
  Word bound_ = 0;
};

template <int kBytes>
__global__ void __launch_bounds__(kThreads, 2) LongRows(const __grid_constant__ CudaSequences all) {
  __shared__ typename LongRow<kBytes>::Shared shared;
  extern __shared__ __align__(128) unsigned char dynamic[];
  LongRow<kBytes>(&shared, reinterpret_cast<uint4*>(dynamic),
                  reinterpret_cast<WordFor<kBytes>*>(dynamic + kRingBytes), all)
      .Run();
}

template <int kBytes>
class TopKLongRows final : public Kernel {
 public:
  static constexpr uint32_t kSharedBytes = kRingBytes + kCapacity<kBytes> * sizeof(WordFor<kBytes>);

  explicit TopKLongRows(const CudaSequences& sequences) : sequences_(sequences) {}

  void Run(const KernelArguments& arguments) const override {
    LongRows<kBytes><<<static_cast<uint32_t>(sequences_.count), kThreads, kSharedBytes,
                       static_cast<cudaStream_t>(arguments.stream)>>>(Bind(sequences_, arguments));
  }

 private:
  CudaSequences sequences_;
};

template <int kBytes>
const Kernel* Create(const TopKProblem& problem, std::string* why_not) {
  const CudaSequences sequences = CudaSequencesOf(problem);
  if (sequences.axis[kInput] != 1) {
    *why_not = "the elements of a sequence are not neighbours";
  } else if (sequences.k > kMaxK<kBytes>) {
    *why_not = StrCat("K is ", sequences.k, "; a block collects for ", kMaxK<kBytes>);
  } else if (uint64_t{sequences.n} * kBytes < kRingBytes || sequences.n >= 1u << 31 ||
             sequences.count >= 1u << 31) {
    *why_not = StrCat(sequences.count, " rows of ", sequences.n, " elements of ", kBytes,
                      " bytes; they should be long, but below 2^31, and as many at most");
  } else if (AllowSharedMemory(LongRows<kBytes>, TopKLongRows<kBytes>::kSharedBytes, why_not)) {
    return new TopKLongRows<kBytes>(sequences);
  }
  return nullptr;
}

}  // namespace

ANYDML_MODULE_EXPORT const Kernel* AnyDmlCreateTopKCudaLongRows(const TopKProblem& problem,
                                                                std::string* why_not) {
  return DispatchBySize(problem.input.type, [&]<int kBytes>() { return Create<kBytes>(problem, why_not); });
}

}  // namespace anydml
