// cuda.counted: short rows with many requested places; a block per row, which is in registers.
//
// Every element is counted in one of many narrow bins. The counts give the bins' begins, and which bins
// contain the K best; few elements share a bin, and these are compared with each other.
#include <algorithm>
#include <bit>

#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/key_bounds.cuh"
#include "ops/top_k/cuda/register_row.cuh"
#include "ops/top_k/cuda/select.cuh"
#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {
namespace {

// Vectors per thread: 8 elements, or one vector.
template <int kBytes>
constexpr int kVectors = kBytes <= 2 ? 1 : kBytes / 2;

template <int kBytes, int kThreads>
class CountedRow {
 public:
  using Key = UnsignedOf<kBytes>;
  using Word = WordFor<kBytes>;
  using Row = RegisterRow<kBytes, kThreads, kVectors<kBytes>>;
  static constexpr int kBins = std::max(4 * kThreads, 1024);
  using Select = BlockSelect<LongWords<kBytes>, kThreads, kBins>;
  using Bins = typename Select::Sorting::Bins;
  using Bounds = KeyBounds<Key, kThreads>;

  struct Shared {
    typename Select::Shared select;
    typename Bounds::Shared bounds;
  };

  // `list` has room for `capacity` words, twice.
  __device__ CountedRow(Shared* shared, Word* list, uint32_t capacity, const TopKSequences& all)
      : shared_(*shared), select_(&shared->select, all.order), all_(all), list_(list), capacity_(capacity) {}

  __device__ void Run(const CudaSequence<kBytes>& sequence) {
    Bins& bins = select_.sorting().bins();
    bins.Clear();
    const Row row(sequence, 0);
    // At least K elements are as good as the worst of K threads' maxima.
    const bool by_maxima = all_.k <= kThreads && kThreads <= sequence.vectors();
    Key worst = ~Key{0};
    Key best = 0;
    row.ForEachKey([&](Key key, uint32_t index) {
      best = max(best, key);
      if (!by_maxima && index < all_.n) worst = min(worst, key);
    });
    if (by_maxima) worst = best;
    Bounds(&shared_.bounds).Join(&worst, &best);
    const bool done = DispatchBySpread<kBytes>(all_.order, [&]<bool kByValue>() {
      const KeySpread<kBytes, kBins, kByValue> spread(all_.order, worst, best);
      return SelectBySpread(sequence, row, worst, spread);
    });
    if (done) return;
    const auto words = [&](auto&& visit) {
      row.ForEachKey([&](Key key, uint32_t index) {
        if (key >= worst && index < all_.n) visit(MakeWord<kBytes>(key, index));
      });
    };
    const WordRange<Word> range = {MakeWord<kBytes>(worst, all_.n - 1), MakeWord<kBytes>(best, 0)};
    const Word* sorted = select_.SelectByWords(words, range, all_.k, list_, list_ + capacity_, capacity_);
    for (uint32_t j = threadIdx.x; j < all_.k; j += kThreads) sequence.Store(j, sorted[j]);
  }

 private:
  // False if too many are close to each other.
  template <typename Spread>
  __device__ bool SelectBySpread(const CudaSequence<kBytes>& sequence, const Row& row, Key worst,
                                 const Spread& spread) {
    Bins& bins = select_.sorting().bins();
    uint32_t bin_and_place[kVectors<kBytes> * KeyVector<kBytes>::kElements];
    int e = 0;
    row.ForEachKey([&](Key key, uint32_t index) {
      const uint32_t bin = spread.BinOf(key);
      bin_and_place[e] = ~0u;
      if (key >= worst && index < all_.n) bin_and_place[e] = bin << 16 | bins.Add(bin);
      ++e;
    });
    __syncthreads();
    const typename Bins::Cut cut = bins.FindCut(all_.k, Select::Sorting::kFullestBin);
    const uint32_t m = cut.before + cut.count;
    if (cut.crowded || m > capacity_) return false;
    e = 0;
    row.ForEachKey([&](Key key, uint32_t index) {
      const uint32_t bin = bin_and_place[e] >> 16;
      if (bin <= cut.bin) list_[bins.At(bin) + (bin_and_place[e] & 0xFFFF)] = MakeWord<kBytes>(key, index);
      ++e;
    });
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < m; i += kThreads) {
      const Word word = list_[i];
      const uint32_t bin = spread.BinOf(static_cast<Key>(word >> 32));
      uint32_t place = bins.At(bin);
      const uint32_t end = bin == cut.bin ? m : bins.At(bin + 1);
      for (uint32_t other = place; other < end; ++other) place += list_[other] > word;
      if (place < all_.k) sequence.Store(place, word);
    }
    return true;
  }

  Shared& shared_;
  Select select_;
  const TopKSequences& all_;
  Word* list_;
  uint32_t capacity_;
};

template <int kBytes, int kThreads>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    Counted(const __grid_constant__ TopKSequences all, uint32_t capacity) {
  using Selection = CountedRow<kBytes, kThreads>;
  __shared__ typename Selection::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  Selection(&shared, reinterpret_cast<WordFor<kBytes>*>(dynamic), capacity, all)
      .Run(CudaSequence<kBytes>(all, blockIdx.x));
}

template <int kBytes, int kThreads>
class TopKCounted final : public Kernel {
 public:
  TopKCounted(const TopKSequences& sequences, uint32_t capacity)
      : sequences_(sequences), capacity_(capacity) {}

  static uint32_t SharedBytes(uint32_t capacity) { return 2 * capacity * sizeof(WordFor<kBytes>); }

  Status Run(const KernelArguments& arguments) const override {
    Counted<kBytes, kThreads>
        <<<static_cast<uint32_t>(sequences_.count), kThreads, SharedBytes(capacity_),
           static_cast<cudaStream_t>(arguments.stream)>>>(Bind(sequences_, arguments), capacity_);
    return {};
  }

 private:
  TopKSequences sequences_;
  uint32_t capacity_;
};

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext& context,
                                     std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  constexpr uint32_t kElements = 16 / kBytes;
  constexpr uint32_t kMaxVectors = 1024 * kVectors<kBytes>;
  const uint32_t n = sequences.n;
  const uint32_t k = sequences.k;
  const bool aligned = n % kElements == 0 && SequencesAreAligned(sequences, kBytes);
  const uint32_t vectors = n / kElements + (aligned ? 0 : 2);
  if (sequences.axis[kInput] != 1) {
    *why_not = "the elements of a sequence are not neighbours";
    return nullptr;
  }
  if (vectors > kMaxVectors || sequences.count > 0x7FFFFFFF) {
    *why_not = StrCat(sequences.count, " rows of ", n, " elements of ", kBytes, " bytes; a block does ",
                      kMaxVectors * kElements);
    return nullptr;
  }
  // Counting everything pays if a bound would leave a large part of it.
  if (k <= 32 || k < n / (vectors <= 128 * kVectors<kBytes> ? 16 : 6)) {
    *why_not = StrCat("K is ", k, " of ", n, "; a bound leaves few of them to put in order");
    return nullptr;
  }
  const auto create = [&]<int kThreads>() -> std::unique_ptr<const Kernel> {
    const uint32_t capacity = std::bit_ceil(std::min(n, k + k / 2 + 64));
    using Created = TopKCounted<kBytes, kThreads>;
    if (!AllowSharedMemory(*context.device, Counted<kBytes, kThreads>, Created::SharedBytes(capacity),
                           why_not))
      return nullptr;
    return std::make_unique<Created>(sequences, capacity);
  };
  if (vectors <= 128 * kVectors<kBytes>) return create.template operator()<128>();
  if (vectors <= 512 * kVectors<kBytes>) return create.template operator()<512>();
  return create.template operator()<1024>();
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaCounted(const TopKProblem& problem, const LowerContext& context,
                                                    std::string* why_not) {
  return DispatchBySize(problem.input.type,
                        [&]<int kBytes>() { return Create<kBytes>(problem, context, why_not); });
}

}  // namespace anydml
