// cuda.rows: a block (of one warp or more) per sequence, which it reads once and keeps in shared memory. The
// K-th largest of the maxima of a few times K groups is a bound that the K best and few others reach.
#pragma once

#include <algorithm>
#include <bit>

#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/key_bounds.cuh"
#include "ops/top_k/cuda/select.cuh"
#include "ops/top_k/cuda/sequences.cuh"
#include "ops/top_k/cuda/shared_row.cuh"

namespace anydml {
namespace top_k_rows {

// The source of the bound for the K best.
enum class BoundBy {
  kThreadMaxima,   // the K-th largest of the maxima of each thread's elements
  kQuarterMaxima,  // the same of each quarter of a thread's elements
  kEveryWord,
};

// Groups give a good bound for up to this many places per 16 groups: at most 1.7 times as many elements as
// places then reach it.
inline constexpr uint32_t kPlacesPer16Groups = 11;

// How a block selects from one sequence.
template <int kBytes, int kThreads, int kVectors>
class RowSelect {
 public:
  using Key = UnsignedOf<kBytes>;
  using Words = ShortWords<kBytes>;
  using Word = typename Words::Word;
  using Range = WordRange<Word>;
  using Row = SharedRow<kBytes, kThreads, kVectors>;
  using Select = BlockSelect<Words, kThreads, 4 * kThreads>;

  using BlockBounds = KeyBounds<Key, kThreads>;
  // In blocks of up to 256 threads one warp finds the bound for all: fewer instructions, and other blocks use
  // the multiprocessor meanwhile.
  static constexpr bool kOneWarpBounds = kThreads > 32 && kThreads <= 256;

  struct Shared {
    typename Select::Shared select;
    typename BlockBounds::Shared bounds;
    Key maxima[kOneWarpBounds ? kThreads : 1];
    KeyBound<Key> bound;
  };

  // Shared memory for `capacity` words to sort; before that it holds the sequence.
  static uint32_t ListBytes(uint32_t capacity) { return capacity * sizeof(Word); }
  static uint32_t RowBytes(uint32_t n, uint32_t capacity) {
    return std::max<uint32_t>((n / KeyVector<kBytes>::kElements + 2) * 16, ListBytes(capacity));
  }

  __device__ RowSelect(Shared* shared, unsigned char* dynamic, uint32_t capacity, const TopKSequences& all)
      : shared_(*shared),
        select_(&shared->select, all.order),
        order_(all.order),
        list_(reinterpret_cast<Word*>(dynamic)),
        spare_(list_ + capacity),
        capacity_(capacity),
        k_(all.k),
        enough_(min(all.k + all.k / 8 + 4, capacity)) {}

  __device__ void Run(const CudaSequence<kBytes>& sequence, BoundBy bound_by) {
    select_.StartCollecting();
    const Row row(sequence, reinterpret_cast<uint4*>(spare_));
    Range range;
    uint32_t m = capacity_ + 1;
    const auto words = [&](auto&& visit) { row.ForEachWord(visit); };
    if (bound_by == BoundBy::kEveryWord) {
      range = select_.RangeOf(words);
    } else {
      const KeyBound<Key> bound = BoundOfKeys(row, bound_by);
      range = {Words::Make(bound.worst, row.n() - 1), Words::Make(bound.best, 0)};
      m = bound.tied ? CollectTied(row, bound) : Collect(row, range.worst);
    }
    if (m > capacity_) {  // without a bound, or with too many that reach it: the best ones are in few groups
      range.worst = select_.Bound(words, range, k_, enough_);
      select_.StartCollecting();
      m = Collect(row, range.worst);
    }
    const Word* sorted = select_.sorting().Sort(list_, spare_, m, range);
    for (uint32_t j = threadIdx.x; j < k_; j += kThreads) {
      sequence.Store(j, MakeWord<kBytes>(Words::KeyOf(sorted[j]), Words::IndexOf(sorted[j])));
    }
    __syncthreads();
  }

 private:
  __device__ KeyBound<Key> BoundOfKeys(const Row& row, BoundBy bound_by) {
    if (bound_by == BoundBy::kThreadMaxima) {
      Key own[1];
      row.MaximaOfGroups(own);
      if constexpr (kOneWarpBounds) return BoundOfOneWarp(own[0]);
      return BoundOfBlock(own);
    }
    Key maxima[4];
    row.MaximaOfGroups(maxima);
    return BoundOfBlock(maxima);
  }

  template <int kCount>
  __device__ KeyBound<Key> BoundOfBlock(const Key (&keys)[kCount]) {
    if constexpr (kThreads >= 512) {
      return BoundByCounting<kBytes>(order_, &select_.sorting().bins(), &shared_.bounds, keys, k_, enough_);
    }
    return BlockBounds(&shared_.bounds).Bound(keys, k_, enough_);
  }

  __device__ KeyBound<Key> BoundOfOneWarp(Key own) {
    shared_.maxima[threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.x < 32) {
      Key keys[kThreads / 32];
#pragma unroll
      for (int i = 0; i < kThreads / 32; ++i) keys[i] = shared_.maxima[i * 32 + threadIdx.x];
      shared_.bound = KeyBounds<Key, 32>(nullptr).Bound(keys, k_, enough_);
    }
    __syncthreads();
    return shared_.bound;
  }

  __device__ uint32_t Collect(const Row& row, Word bound) {
    row.ForEachWordFrom(Words::KeyOf(bound), row.n(), [&](Word word) {
      if (word >= bound) select_.Add(word, list_, capacity_);
    });
    return select_.Collected();
  }

  // If many are equal to the bound: the better ones, and among the equal ones those with the lowest indices.
  __device__ uint32_t CollectTied(const Row& row, const KeyBound<Key>& bound) {
    uint32_t better = 0;
    if (bound.worst != bound.best) better = Collect(row, Words::Worst(bound.worst + 1));
    if (better >= k_) return better;
    const auto equals = [&](auto&& visit) {
      row.ForEachWordBeside(bound.worst, [&](Word word) {
        if (Words::KeyOf(word) == bound.worst) visit(word);
      });
    };
    const Word first = Words::Best(bound.worst);
    const Word last = select_.Bound(equals, {first - (row.n() - 1), first}, k_ - better, capacity_ - better);
    row.ForEachWordFrom(bound.worst, Words::IndexOf(last), [&](Word word) {
      if (word >= last && word <= first) select_.Add(word, list_, capacity_);
    });
    return select_.Collected();
  }

  Shared& shared_;
  Select select_;
  KeyOrder order_;
  Word* list_;
  Word* spare_;
  uint32_t capacity_;
  uint32_t k_;
  uint32_t enough_;
};

// As many threads as a multiprocessor should have; with more, too few registers are left.
constexpr int kBlocksOf(int threads) { return threads == 32 ? 32 : std::max(1, 1280 / threads); }

template <int kBytes, int kThreads, int kVectors>
__global__ void __launch_bounds__(kThreads, kBlocksOf(kThreads))
    Rows(const __grid_constant__ TopKSequences all, uint32_t capacity, BoundBy bound_by) {
  using Selection = RowSelect<kBytes, kThreads, kVectors>;
  __shared__ typename Selection::Shared shared;
  // Aligned as most rows are in memory, which makes asynchronous copies a tenth faster.
  extern __shared__ __align__(128) unsigned char dynamic[];
  Selection selection(&shared, dynamic, capacity, all);
  for (uint64_t s = blockIdx.x; s < all.count; s += gridDim.x) {
    selection.Run(CudaSequence<kBytes>(all, s), bound_by);
  }
}

template <int kBytes, int kThreads, int kVectors>
class TopKRows final : public Kernel {
 public:
  TopKRows(const TopKSequences& sequences, uint32_t capacity, BoundBy bound_by)
      : sequences_(sequences), capacity_(capacity), bound_by_(bound_by) {}

  bool Prepare(const DeviceTraits& device, std::string* why_not) {
    using Selection = RowSelect<kBytes, kThreads, kVectors>;
    shared_bytes_ = Selection::ListBytes(capacity_) + Selection::RowBytes(sequences_.n, capacity_);
    if (!AllowSharedMemory(device, Rows<kBytes, kThreads, kVectors>, shared_bytes_, why_not)) return false;
    // Blocks of one warp process several sequences each, because starting a block takes longer than loading
    // one sequence.
    uint64_t blocks = 0x7FFFFFFF;
    if (kThreads == 32) {
      int resident = 0;
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, Rows<kBytes, kThreads, kVectors>, kThreads,
                                                    shared_bytes_);
      blocks = static_cast<uint64_t>(std::max(resident, 1)) * device.multiprocessors;
    }
    blocks_ = static_cast<uint32_t>(std::min(sequences_.count, blocks));
    return true;
  }

  Status Run(const KernelArguments& arguments) const override {
    Rows<kBytes, kThreads, kVectors>
        <<<blocks_, kThreads, shared_bytes_, static_cast<cudaStream_t>(arguments.stream)>>>(
            Bind(sequences_, arguments), capacity_, bound_by_);
    return {};
  }

 private:
  TopKSequences sequences_;
  uint32_t capacity_;
  BoundBy bound_by_;
  uint32_t shared_bytes_ = 0;
  uint32_t blocks_ = 0;
};

template <int kBytes>
constexpr uint32_t kMaxCapacity = kBytes == 8 ? 4096 : 8192;  // words

template <int kBytes, int kThreads, int kVectors>
std::unique_ptr<const Kernel> CreateFor(const TopKSequences& sequences, BoundBy bound_by,
                                        const DeviceTraits& device, std::string* why_not) {
  const uint32_t capacity = std::min(std::bit_ceil(2 * sequences.k + 64), kMaxCapacity<kBytes>);
  auto kernel = std::make_unique<TopKRows<kBytes, kThreads, kVectors>>(sequences, capacity, bound_by);
  if (!kernel->Prepare(device, why_not)) return nullptr;
  return kernel;
}

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext& context,
                                     std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  constexpr uint32_t kMaxK = kMaxCapacity<kBytes>;
  constexpr uint32_t kElements = 16 / kBytes;
  constexpr uint32_t kPerThread = 8;  // vectors
  const uint32_t n = sequences.n;
  const uint32_t k = sequences.k;
  // A sequence may begin and end anywhere.
  const bool aligned = n % kElements == 0 && SequencesAreAligned(sequences, kBytes);
  const uint32_t vectors = n / kElements + (aligned ? 0 : 2);
  if (sequences.axis[kInput] != 1) {
    *why_not = "the elements of a sequence are not neighbours";
    return nullptr;
  }
  if (k > kMaxK || vectors > 1024 * kPerThread) {
    *why_not = StrCat("K is ", k, " of ", n, " elements of ", kBytes, " bytes; a block does ", kMaxK, " of ",
                      1024 * kPerThread * kElements);
    return nullptr;
  }
  const uint32_t groups = std::max<uint32_t>(n / kElements, 1);  // the most that there can be
  const uint32_t wanted = (k * 16 - 1) / kPlacesPer16Groups + 1;
  // As few threads as have the vectors and the groups: quarters are nearly as good as threads.
  const uint32_t threads = std::max((vectors - 1) / kPerThread + 1, wanted <= 32       ? wanted
                                                                    : wanted <= groups ? wanted / 3
                                                                                       : 1024);
  const auto create = [&]<int kThreads, int kVectors>() {
    const BoundBy by = std::min<uint32_t>(groups, kThreads) >= wanted       ? BoundBy::kThreadMaxima
                       : std::min<uint32_t>(groups, 4 * kThreads) >= wanted ? BoundBy::kQuarterMaxima
                                                                            : BoundBy::kEveryWord;
    return CreateFor<kBytes, kThreads, kVectors>(sequences, by, *context.device, why_not);
  };
  if (threads <= 32 && vectors <= 64) return create.template operator()<32, 2>();
  if (threads <= 32) return create.template operator()<32, kPerThread>();
  if (threads <= 128 && vectors <= 512) return create.template operator()<128, 4>();
  if (threads <= 128) return create.template operator()<128, kPerThread>();
  if (threads <= 256) return create.template operator()<256, kPerThread>();
  if (threads <= 512) return create.template operator()<512, kPerThread>();
  return create.template operator()<1024, kPerThread>();
}

}  // namespace top_k_rows

// For elements of one or two bytes; in a file of its own, because it takes long to compile.
std::unique_ptr<const Kernel> CreateTopKCudaNarrowRows(const TopKProblem& problem,
                                                       const LowerContext& context, std::string* why_not);

}  // namespace anydml
