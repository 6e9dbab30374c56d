// cuda.stream: long sequences, read once by as many blocks as there are.
//
// The first kernel finds a bound for each sequence: an element of a sorted sample that at least K elements
// reach with near certainty, and not many more. The second one streams: blocks collect the elements that
// reach the bound, and the last block of a sequence sorts the K best of them. If there are too few or too
// many, it selects from the whole sequence, which is slower but correct.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/rounds.cuh"
#include "ops/top_k/cuda/sample.cuh"
#include "ops/top_k/cuda/select.cuh"
#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {
namespace {

constexpr int kStreamThreads = 512;
constexpr int kBatch = 8;  // vectors in flight per thread

// How the work is divided; the same for all sequences of a problem.
struct StreamPlan {
  uint32_t log2_samples;
  uint32_t rank;           // of the bound in the sample
  uint32_t cluster;        // blocks that take the sample of a sequence
  uint32_t chunks;         // blocks per sequence
  uint32_t chunk_vectors;  // per chunk
  uint32_t found_room;     // words per sequence for elements that reach the bound
  uint32_t list_room;      // words of shared memory that are sorted, a power of two
};

// Shared by the blocks of a sequence; in the temporary resource.
template <int kBytes>
struct alignas(16) Meeting {
  WordFor<kBytes> bound;
  uint32_t found;
  uint32_t done;  // blocks
};

template <int kBytes>
__device__ Meeting<kBytes>* Meetings(std::byte* temporary) {
  return reinterpret_cast<Meeting<kBytes>*>(temporary);
}
template <int kBytes>
__device__ WordFor<kBytes>* Found(std::byte* temporary, const TopKSequences& all, const StreamPlan& plan,
                                  uint64_t sequence) {
  return reinterpret_cast<WordFor<kBytes>*>(Meetings<kBytes>(temporary) + all.count) +
         sequence * plan.found_room;
}

template <int kBytes>
__global__ void __launch_bounds__(kSampleThreads)
    Sample(const __grid_constant__ TopKSequences all, StreamPlan plan, std::byte* temporary) {
  using Word = WordFor<kBytes>;
  using Select = BlockSelect<LongWords<kBytes>, kSampleThreads, 4 * kSampleThreads>;
  __shared__ typename Select::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  cudaTriggerProgrammaticLaunchCompletion();
  const uint64_t s = blockIdx.x / plan.cluster;
  Word* sample = reinterpret_cast<Word*>(dynamic);
  if (!GatherSample<kBytes>(CudaSequence<kBytes>(all, s), plan.log2_samples, sample)) return;
  Select select(&shared, all.order);
  const uint32_t samples = 1u << plan.log2_samples;
  const auto for_each = [&](auto&& visit) {
    for (uint32_t i = threadIdx.x; i < samples; i += kSampleThreads) visit(sample[i]);
  };
  const Word bound = select.Bound(for_each, select.RangeOf(for_each), plan.rank, plan.rank + plan.rank / 4);
  if (threadIdx.x == 0) Meetings<kBytes>(temporary)[s] = {bound, 0, 0};
}

// Vectors of one thread, loaded together: begin, begin + kStreamThreads... below end; those below `readable`
// can be read whole.
template <int kBytes>
class Batch {
 public:
  __device__ Batch(const CudaSequence<kBytes>& sequence, uint32_t begin, uint32_t end, uint32_t readable)
      : left_(static_cast<int>(end - begin)), begin_(begin) {
    const uint4* from = sequence.AddressOfVector(begin);
    const auto whole = static_cast<int>(readable - begin);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (i * kStreamThreads < whole) loaded_[i] = __ldg(from + i * kStreamThreads);
    }
    if (whole == left_) return;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (i * kStreamThreads == whole) loaded_[i] = sequence.LoadLast(readable);
    }
  }

  // Calls add(word) for every element that reaches `bound`, none of which has a key below `least`.
  template <BetterBy kBetterBy, typename Add>
  __device__ void ForEachReaching(const CudaSequence<kBytes>& sequence, WordFor<kBytes> bound,
                                  UnsignedOf<kBytes> least, Add&& add) const {
    using Best = PackedBest<kBytes, kBetterBy>;
    uint32_t hits = 0;  // vectors that have one; nearly always none
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (i * kStreamThreads >= left_) break;
      const KeyVector<kBytes> vector{{loaded_[i].x, loaded_[i].y, loaded_[i].z, loaded_[i].w}};
      if (Best::Reaches(sequence.order(), Best::Of(sequence.order(), vector), least)) hits |= 1u << i;
    }
    // Lanes with hits in different vectors process them at the same time. (Loading the vector again might
    // miss the cache, and every lane of the warp would wait.)
    for (; hits != 0; hits &= hits - 1) {
      const int hit = __ffs(hits) - 1;
      KeyVector<kBytes> keys{};
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (i == hit) keys = {{loaded_[i].x, loaded_[i].y, loaded_[i].z, loaded_[i].w}};
      }
      ElementsToKeys(sequence.order(), &keys);
      const int64_t first = sequence.FirstOf(begin_ + hit * kStreamThreads);
#pragma unroll
      for (int e = 0; e < KeyVector<kBytes>::kElements; ++e) {
        const WordFor<kBytes> word = MakeWord<kBytes>(keys[e], static_cast<uint32_t>(first + e));
        if (word >= bound && first + e >= 0 && first + e < sequence.n()) add(word);
      }
    }
  }

 private:
  int left_;  // vectors to the end of the chunk
  uint32_t begin_;
  uint4 loaded_[kBatch];
};

template <int kBytes>
__global__ void __launch_bounds__(kStreamThreads, 2)
    Stream(const __grid_constant__ TopKSequences all, StreamPlan plan, std::byte* temporary) {
  using Word = WordFor<kBytes>;
  using Select = BlockSelect<LongWords<kBytes>, kStreamThreads, 4 * kStreamThreads>;
  __shared__ typename Select::Shared shared;
  __shared__ uint32_t flushed_to;
  extern __shared__ __align__(16) unsigned char dynamic[];
  Word* list = reinterpret_cast<Word*>(dynamic);
  Select collecting(&shared, KeyOrder{});  // needs none, and leaves the registers to the batch

  const uint64_t s = blockIdx.x / plan.chunks;
  const CudaSequence<kBytes> sequence(all, s);
  Meeting<kBytes>& meeting = Meetings<kBytes>(temporary)[s];
  Word* found = Found<kBytes>(temporary, all, plan, s);
  const uint32_t chunk_begin = blockIdx.x % plan.chunks * plan.chunk_vectors;
  const auto end = static_cast<uint32_t>(min(uint64_t{chunk_begin} + plan.chunk_vectors, sequence.vectors()));
  const auto readable = static_cast<uint32_t>(min(uint64_t{end}, sequence.readable_vectors()));
  uint32_t begin = chunk_begin + threadIdx.x;

  Batch<kBytes> batch(sequence, begin, end, readable);
  cudaGridDependencySynchronize();  // for the bound; only the loads above do not depend on it
  const Word bound = meeting.bound;
  // If many elements are equal to the bound, all those of this chunk may come after the ones that reach it.
  auto least = static_cast<UnsignedOf<kBytes>>(bound >> 32);
  const bool behind = sequence.FirstOf(chunk_begin) > static_cast<int64_t>(IndexOfWord(bound));
  if (behind) ++least;
  if (behind && least == 0) begin = end;  // none is better
  const uint32_t buffer_room = 2 * plan.list_room;
  collecting.StartCollecting();
  DispatchByOrder<kBytes>(all.order, [&]<BetterBy kBetterBy>() {
    while (begin < end) {
      batch.template ForEachReaching<kBetterBy>(sequence, bound, least, [&](Word word) {
        if (collecting.Add(word, list, buffer_room) < buffer_room) return;
        const uint32_t place = atomicAdd(&meeting.found, 1);
        if (place < plan.found_room) found[place] = word;
      });
      begin += kBatch * kStreamThreads;
      if (begin < end) batch = Batch<kBytes>(sequence, begin, end, readable);
    }
  });

  const uint32_t buffered = min(collecting.Collected(), buffer_room);
  if (threadIdx.x == 0 && buffered > 0) flushed_to = atomicAdd(&meeting.found, buffered);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < buffered; i += kStreamThreads) {
    if (flushed_to + i < plan.found_room) found[flushed_to + i] = list[i];
  }
  __threadfence();
  __syncthreads();
  const bool last = threadIdx.x == 0 && atomicAdd(&meeting.done, 1) == plan.chunks - 1;
  if (!__syncthreads_or(last)) return;

  __threadfence();
  Select select(&shared, all.order);
  const uint32_t m = __ldcg(&meeting.found);
  if (m < all.k || m > plan.found_room) {
    SelectInRounds<kBytes, Select, kStreamThreads>(sequence, all.k, select, list, plan.list_room);
    return;
  }
  // Read several times: from shared memory if they fit.
  const bool fits = m <= plan.list_room;
  if (fits) {
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < m; i += kStreamThreads) list[plan.list_room + i] = found[i];
  }
  // (Threads visit what they copied themselves: no barrier.)
  const auto for_each = [&](auto&& visit) {
    const Word* words = fits ? list + plan.list_room : found;
    uint32_t i = threadIdx.x;
    for (; i + 7 * kStreamThreads < m; i += 8 * kStreamThreads) {
      Word loaded[8];
#pragma unroll
      for (int l = 0; l < 8; ++l) loaded[l] = words[i + l * kStreamThreads];
#pragma unroll
      for (int l = 0; l < 8; ++l) visit(loaded[l]);
    }
    for (; i < m; i += kStreamThreads) visit(words[i]);
  };
  const Word* sorted = select.SelectAndSort(for_each, all.k, list, list + plan.list_room, plan.list_room);
  for (uint32_t j = threadIdx.x; j < all.k; j += kStreamThreads) sequence.Store(j, sorted[j]);
}

template <int kBytes>
class TopKStream final : public Kernel {
 public:
  TopKStream(const TopKSequences& sequences, const StreamPlan& plan) : sequences_(sequences), plan_(plan) {}

  static uint32_t SampleBytes(const StreamPlan& plan) { return sizeof(WordFor<kBytes>) << plan.log2_samples; }
  static uint32_t StreamBytes(const StreamPlan& plan) { return 2 * plan.list_room * sizeof(WordFor<kBytes>); }

  uint64_t temporary_bytes() const override {
    return sequences_.count *
           (sizeof(Meeting<kBytes>) + uint64_t{plan_.found_room} * sizeof(WordFor<kBytes>));
  }

  Status Run(const KernelArguments& arguments) const override {
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    const TopKSequences all = Bind(sequences_, arguments);
    LaunchClusters(Sample<kBytes>, static_cast<uint32_t>(all.count), plan_.cluster, kSampleThreads,
                   SampleBytes(plan_), stream, all, plan_, arguments.temporary.data);
    LaunchEarly(Stream<kBytes>, static_cast<uint32_t>(all.count * plan_.chunks), kStreamThreads,
                StreamBytes(plan_), stream, all, plan_, arguments.temporary.data);
    return {};
  }

 private:
  TopKSequences sequences_;
  StreamPlan plan_;
};

template <int kBytes>
StreamPlan PlanOf(const TopKSequences& all, const DeviceTraits& device) {
  constexpr uint32_t kMaxSamples = 131072 / sizeof(WordFor<kBytes>);
  constexpr uint32_t kMaxChunkVectors = 16384;  // 256 KiB
  StreamPlan plan;
  // A larger sample delays the stream, because scattered reads are slow.
  const uint32_t samples = std::clamp<uint32_t>(std::bit_floor(all.n / 128), 1024, kMaxSamples);
  plan.log2_samples = std::countr_zero(samples);
  plan.cluster = SampleCluster(all.count, samples, device.multiprocessors);
  plan.rank = RankOfBound(all.k, all.n, samples);
  // Six standard deviations more than expected, and a little for small ranks.
  const double most_samples = plan.rank * 1.25 + 6 * std::sqrt(plan.rank) + 24;
  plan.found_room = static_cast<uint32_t>(std::min<double>(all.n, most_samples * all.n / samples));
  plan.list_room = std::bit_ceil(std::max<uint32_t>(all.k + all.k / 4 + 64, 16384 / sizeof(WordFor<kBytes>)));
  const uint64_t vectors = uint64_t{all.n} * kBytes / 16 + 2;
  const uint64_t share = vectors * all.count / (2 * device.multiprocessors) + 1;
  const uint64_t chunks = (vectors - 1) / std::clamp<uint64_t>(share, kStreamThreads, kMaxChunkVectors) + 1;
  plan.chunk_vectors = static_cast<uint32_t>((vectors - 1) / chunks + 1);
  plan.chunks = static_cast<uint32_t>((vectors - 1) / plan.chunk_vectors + 1);
  return plan;
}

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext& context,
                                     std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  constexpr uint32_t kMaxK = 40960 / sizeof(WordFor<kBytes>);
  constexpr uint32_t kMinN = 8192;
  if (sequences.axis[kInput] != 1) {
    *why_not = "the elements of a sequence are not neighbours";
  } else if (sequences.k > kMaxK) {
    *why_not = StrCat("K is ", sequences.k, "; there is shared memory for ", kMaxK);
  } else if (sequences.n < kMinN) {
    *why_not = StrCat(sequences.n, " elements are too few to take a sample of");
  } else {
    const StreamPlan plan = PlanOf<kBytes>(sequences, *context.device);
    if (sequences.count * std::max(plan.chunks, plan.cluster) > 0x7FFFFFFF) {
      *why_not = StrCat(sequences.count, " sequences are too many");
    } else if (AllowSharedMemory(*context.device, Sample<kBytes>, TopKStream<kBytes>::SampleBytes(plan),
                                 why_not) &&
               AllowSharedMemory(*context.device, Stream<kBytes>, TopKStream<kBytes>::StreamBytes(plan),
                                 why_not)) {
      return std::make_unique<TopKStream<kBytes>>(sequences, plan);
    }
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaStream(const TopKProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  return DispatchBySize(problem.input.type,
                        [&]<int kBytes>() { return Create<kBytes>(problem, context, why_not); });
}

}  // namespace anydml
