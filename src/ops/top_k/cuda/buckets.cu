// cuda.buckets: many places of sequences of up to about a million elements, in three kernels: a sorted sample
// gives the borders of buckets; blocks distribute the elements that belong to a bucket; a block per bucket
// sorts it. Words are distinct, so buckets are even for any data. If a bucket overflows nevertheless, or too
// few elements are found, SelectInRounds takes over.
#include <algorithm>
#include <bit>

#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/register_row.cuh"
#include "ops/top_k/cuda/rounds.cuh"
#include "ops/top_k/cuda/sample.cuh"
#include "ops/top_k/cuda/select.cuh"
#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {
namespace {

constexpr int kThreads = 512;
constexpr uint32_t kGap = 8;          // samples between borders
constexpr uint32_t kRoomPerMean = 5;  // 8 gaps are longer than 40 with a probability of 10^-10

template <int kBytes>
constexpr uint32_t kSamples = 65536 / sizeof(WordFor<kBytes>);
template <int kBytes>
constexpr uint32_t kMaxRoom = kSamples<kBytes>;

struct BucketPlan {
  uint32_t cluster;    // blocks that take a sample
  uint32_t buckets;    // per sequence
  bool everything;     // every element belongs to a bucket
  uint32_t chunks;     // blocks per sequence that distribute
  uint32_t room;       // words per bucket
  uint32_t list_room;  // a power of two
};

// The temporary resource: borders, counts and buckets of all sequences, one after the other.
template <int kBytes>
class Buckets {
 public:
  using Word = WordFor<kBytes>;

  __host__ __device__ Buckets(const BucketPlan& plan, uint64_t sequences, std::byte* temporary)
      : plan_(plan), sequences_(sequences), words_(reinterpret_cast<Word*>(temporary)) {}

  // The worst word of each bucket.
  __device__ Word* Borders(uint64_t s) const { return words_ + s * plan_.buckets; }
  __device__ Word* Bucket(uint64_t s, uint32_t b) const {
    return words_ + sequences_ * plan_.buckets + (s * plan_.buckets + b) * plan_.room;
  }
  __device__ uint32_t* Counts(uint64_t s) const {
    return reinterpret_cast<uint32_t*>(Bucket(sequences_, 0)) + s * plan_.buckets;
  }
  uint64_t bytes() const {
    return sequences_ * plan_.buckets * ((1 + uint64_t{plan_.room}) * sizeof(Word) + sizeof(uint32_t));
  }

 private:
  const BucketPlan& plan_;
  uint64_t sequences_;
  Word* words_;
};

template <int kBytes>
__global__ void __launch_bounds__(kSampleThreads)
    MakeBorders(const __grid_constant__ TopKSequences all, const __grid_constant__ BucketPlan plan,
                std::byte* temporary) {
  using Word = WordFor<kBytes>;
  using Select = BlockSelect<LongWords<kBytes>, kSampleThreads, 4 * kSampleThreads>;
  constexpr uint32_t kCount = kSamples<kBytes>;
  __shared__ typename Select::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  cudaTriggerProgrammaticLaunchCompletion();
  const uint64_t s = blockIdx.x / plan.cluster;
  Word* sample = reinterpret_cast<Word*>(dynamic);
  if (!GatherSample<kBytes>(CudaSequence<kBytes>(all, s), std::countr_zero(kCount), sample)) return;
  Select select(&shared, all.order);
  const auto range = select.RangeOf([&](auto&& visit) {
    for (uint32_t i = threadIdx.x; i < kCount; i += kSampleThreads) visit(sample[i]);
  });
  const Word* sorted = select.sorting().Sort(sample, sample + kCount, kCount, range);
  const Buckets<kBytes> buckets(plan, all.count, temporary);
  for (uint32_t b = threadIdx.x; b < plan.buckets; b += kSampleThreads) {
    const bool last = b == plan.buckets - 1;
    buckets.Borders(s)[b] = last && plan.everything ? Word{0} : sorted[(b + 1) * kGap - 1];
    buckets.Counts(s)[b] = 0;
  }
}

// The bucket of a word that belongs to one.
template <typename Word>
__device__ uint32_t BucketOf(Word word, const Word* borders, uint32_t buckets) {
  uint32_t first = 0;
  for (uint32_t count = buckets - 1; count > 0;) {
    const uint32_t half = (count + 1) / 2;
    const bool beyond = borders[first + half - 1] > word;
    first += beyond ? half : 0;
    count = beyond ? count - half : half - 1;
  }
  return first;
}

template <int kBytes>
constexpr int kRowVectors = std::max(1, kBytes);  // 16 elements per thread

template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    Distribute(const __grid_constant__ TopKSequences all, const __grid_constant__ BucketPlan plan,
               std::byte* temporary) {
  using Word = WordFor<kBytes>;
  constexpr uint32_t kMaxBuckets = kSamples<kBytes> / kGap;
  __shared__ Word borders[kMaxBuckets];
  __shared__ uint32_t counts[kMaxBuckets];
  const uint64_t s = blockIdx.x / plan.chunks;
  const CudaSequence<kBytes> sequence(all, s);
  const RegisterRow<kBytes, kThreads, kRowVectors<kBytes>> row(
      sequence, blockIdx.x % plan.chunks * kThreads * kRowVectors<kBytes>);
  cudaGridDependencySynchronize();
  const Buckets<kBytes> buckets(plan, all.count, temporary);
  for (uint32_t b = threadIdx.x; b < plan.buckets; b += kThreads) {
    borders[b] = buckets.Borders(s)[b];
    counts[b] = 0;
  }
  __syncthreads();

  // The bucket, and the place among this block's words in it; first all places, then the words.
  const Word worst = borders[plan.buckets - 1];
  uint32_t bucket_and_place[16];
  int e = 0;
  row.ForEachKey([&](auto key, uint32_t index) {
    const Word word = MakeWord<kBytes>(key, index);
    if (word >= worst && index < all.n) {
      const uint32_t b = BucketOf(word, borders, plan.buckets);
      bucket_and_place[e] = b << 16 | atomicAdd(&counts[b], 1);
    }
    ++e;
  });
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < plan.buckets; b += kThreads) {
    if (counts[b] > 0) counts[b] = atomicAdd(&buckets.Counts(s)[b], counts[b]);
  }
  __syncthreads();
  e = 0;
  row.ForEachKey([&](auto key, uint32_t index) {
    const Word word = MakeWord<kBytes>(key, index);
    if (word >= worst && index < all.n) {
      const uint32_t b = bucket_and_place[e] >> 16;
      const uint32_t place = counts[b] + (bucket_and_place[e] & 0xFFFF);
      if (place < plan.room) buckets.Bucket(s, b)[place] = word;
    }
    ++e;
  });
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    SortBuckets(const __grid_constant__ TopKSequences all, const __grid_constant__ BucketPlan plan,
                std::byte* temporary) {
  using Word = WordFor<kBytes>;
  using Select = BlockSelect<LongWords<kBytes>, kThreads, 4 * kThreads>;
  __shared__ typename Select::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  Word* list = reinterpret_cast<Word*>(dynamic);
  Select select(&shared, all.order);
  cudaGridDependencySynchronize();
  const Buckets<kBytes> buckets(plan, all.count, temporary);
  const uint64_t s = blockIdx.x / plan.buckets;
  const uint32_t mine = blockIdx.x % plan.buckets;
  const CudaSequence<kBytes> sequence(all, s);

  uint32_t before = 0;  // words in better buckets
  uint32_t others = 0;
  bool overflow = false;
  for (uint32_t b = threadIdx.x; b < plan.buckets; b += kThreads) {
    const uint32_t count = buckets.Counts(s)[b];
    (b < mine ? before : others) += count;
    overflow |= count > plan.room;
  }
  before = select.SumOfThreads(before);
  others = select.SumOfThreads(others);
  if (__syncthreads_or(overflow) || before + others < all.k) {
    if (mine == 0) {
      SelectInRounds<kBytes, Select, kThreads>(sequence, all.k, select, list, plan.list_room);
    }
    return;
  }
  if (before >= all.k) return;

  const uint32_t m = buckets.Counts(s)[mine];
  const Word* words = buckets.Bucket(s, mine);
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < m; i += kThreads) list[i] = words[i];
  const auto range = select.RangeOf([&](auto&& visit) {
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) visit(list[i]);
  });
  const Word* sorted = select.sorting().Sort(list, list + plan.list_room, m, range);
  const uint32_t count = min(m, all.k - before);
  for (uint32_t j = threadIdx.x; j < count; j += kThreads) sequence.Store(before + j, sorted[j]);
}

template <int kBytes>
class TopKBuckets final : public Kernel {
 public:
  TopKBuckets(const TopKSequences& sequences, const BucketPlan& plan) : sequences_(sequences), plan_(plan) {}

  static constexpr uint32_t kSampleBytes = 2 * kSamples<kBytes> * sizeof(WordFor<kBytes>);
  static uint32_t SortBytes(const BucketPlan& plan) { return 2 * plan.list_room * sizeof(WordFor<kBytes>); }

  uint64_t temporary_bytes() const override {
    return Buckets<kBytes>(plan_, sequences_.count, nullptr).bytes();
  }

  Status Run(const KernelArguments& arguments) const override {
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    const TopKSequences all = Bind(sequences_, arguments);
    std::byte* temporary = arguments.temporary.data;
    const auto count = static_cast<uint32_t>(all.count);
    LaunchClusters(MakeBorders<kBytes>, count, plan_.cluster, kSampleThreads, kSampleBytes, stream, all,
                   plan_, temporary);
    LaunchEarly(Distribute<kBytes>, count * plan_.chunks, kThreads, 0, stream, all, plan_, temporary);
    LaunchEarly(SortBuckets<kBytes>, count * plan_.buckets, kThreads, SortBytes(plan_), stream, all, plan_,
                temporary);
    return {};
  }

 private:
  TopKSequences sequences_;
  BucketPlan plan_;
};

template <int kBytes>
BucketPlan PlanOf(const TopKSequences& all, const DeviceTraits& device) {
  constexpr uint32_t kCount = kSamples<kBytes>;
  BucketPlan plan;
  plan.cluster = SampleCluster(all.count, kCount, device.multiprocessors);
  const uint32_t rank = RankOfBound(all.k, all.n, kCount);
  plan.buckets = (rank - 1) / kGap + 1;
  plan.everything = plan.buckets == kCount / kGap;
  const uint64_t vectors = uint64_t{all.n} * kBytes / 16 + 2;
  plan.chunks = static_cast<uint32_t>((vectors - 1) / (kThreads * kRowVectors<kBytes>)+1);
  plan.room = static_cast<uint32_t>(uint64_t{all.n} * kGap * kRoomPerMean / kCount + 64);
  plan.list_room = std::bit_ceil(plan.room);
  return plan;
}

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext& context,
                                     std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  constexpr uint32_t kMinN = 2 * kSamples<kBytes>;
  constexpr uint32_t kMaxN = kMaxRoom<kBytes> / (kGap * kRoomPerMean) * kSamples<kBytes> - 64;
  if (sequences.axis[kInput] != 1) {
    *why_not = "the elements of a sequence are not neighbours";
  } else if (sequences.n < kMinN || sequences.n > kMaxN) {
    *why_not = StrCat("sequences have ", sequences.n, " elements, not ", kMinN, " to ", kMaxN);
  } else {
    const BucketPlan plan = PlanOf<kBytes>(sequences, *context.device);
    if (sequences.count * std::max(plan.chunks, plan.buckets) > 0x7FFFFFFF) {
      *why_not = StrCat(sequences.count, " sequences are too many");
    } else if (AllowSharedMemory(*context.device, MakeBorders<kBytes>, TopKBuckets<kBytes>::kSampleBytes,
                                 why_not) &&
               AllowSharedMemory(*context.device, SortBuckets<kBytes>, TopKBuckets<kBytes>::SortBytes(plan),
                                 why_not)) {
      return std::make_unique<TopKBuckets<kBytes>>(sequences, plan);
    }
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaBuckets(const TopKProblem& problem, const LowerContext& context,
                                                    std::string* why_not) {
  return DispatchBySize(problem.input.type,
                        [&]<int kBytes>() { return Create<kBytes>(problem, context, why_not); });
}

}  // namespace anydml
