// cuda.registers: a block (of one warp or more) per sequence, which it reads once and keeps in
// registers. The K-th best of the bests of a few times K groups bounds the K best: few more reach
// it. Groups are strided, so that sorted sequences spread over them.
#include <algorithm>
#include <bit>

#include "ops/top_k/cuda_launch.h"
#include "ops/top_k/cuda_register_row.cuh"
#include "ops/top_k/cuda_select.cuh"
#include "ops/top_k/cuda_sequences.cuh"
#include "ops/module.h"

namespace anydml {
namespace {

// What groups are worth: up to this many places for every 16 groups. Those that reach the bound
// are then at most 1.7 times as many as places.
constexpr uint32_t kPlacesPer16Groups = 11;

// One sequence's way through a block.
template <int kBytes, int kThreads, int kVectors>
class RegisterSelect {
 public:
  using Word = WordFor<kBytes>;
  using Range = WordRange<Word>;
  using Select = BlockSelect<Word, kThreads, 4 * kThreads>;
  // Up to here one warp finds the bound for all: fewer instructions, and other blocks fill the time.
  static constexpr bool kOneWarpBounds = kThreads <= 256;
  using WarpSelect = BlockSelect<Word, 32, 256>;

  struct Shared {
    typename Select::Shared select;
    typename WarpSelect::Shared warp_select;
    Word bests[kOneWarpBounds ? kThreads : 1];
    Range range;
  };

  __device__ RegisterSelect(Shared* shared, Word* list, uint32_t capacity, uint32_t k)
      : shared_(*shared),
        select_(&shared->select),
        list_(list),
        capacity_(capacity),
        k_(k),
        enough_(min(k + k / 8 + 4, capacity)) {}

  __device__ void Run(const CudaSequence<kBytes>& sequence) {
    RegisterRow<kBytes, kThreads, kVectors> row(sequence, 0);
    const auto words = [&](auto&& visit) { row.ForEachWord(visit); };
    Range range;
    uint32_t m;
    if (k_ * 16 <= kPlacesPer16Groups * kThreads) {
      const Word own = row.template BestOf<1>(0);
      range = BoundOfOwn(own);
      m = Collect(row, range.worst, own);
    } else {
      constexpr int kGroups = kVectors < 4 ? 1 : 4;
      range = k_ * 16 <= kPlacesPer16Groups * kThreads * kGroups
                  ? BoundOf([&](auto&& visit) { row.template ForEachBest<kGroups>(visit); })
                  : BoundOf(words);
      m = Collect(row, range.worst, Word{0});
    }
    if (m > capacity_) {  // the best ones crowd in few groups
      range.worst = select_.Bound(words, range, k_, enough_);
      m = Collect(row, range.worst, Word{0});
    }
    const Word* sorted = select_.Sort(list_, list_ + capacity_, m, range);
    for (uint32_t j = threadIdx.x; j < k_; j += kThreads) sequence.Store(j, sorted[j]);
    __syncthreads();
  }

 private:
  template <typename ForEach>
  __device__ Range BoundOf(ForEach&& for_each) {
    Range range = select_.RangeOf(for_each);
    range.worst = select_.Bound(for_each, range, k_, enough_);
    return range;
  }

  // From one word of every thread.
  __device__ Range BoundOfOwn(Word own) {
    if constexpr (kThreads == 32) {
      return BoundOfLanes(own, k_);
    } else if constexpr (kOneWarpBounds) {
      shared_.bests[threadIdx.x] = own;
      __syncthreads();
      if (threadIdx.x < 32) {
        const auto for_each = [&](auto&& visit) {
#pragma unroll
          for (int i = 0; i < kThreads / 32; ++i) visit(shared_.bests[i * 32 + threadIdx.x]);
        };
        WarpSelect select(&shared_.warp_select);
        Range range = select.RangeOf(for_each);
        range.worst = select.Bound(for_each, range, k_, enough_);
        shared_.range = range;
      }
      __syncthreads();
      return shared_.range;
    } else {
      return BoundOf([&](auto&& visit) { visit(own); });
    }
  }

  // What reaches the bound to the list. A thread's best goes there first: most have no other, and
  // adding in the midst of a sequence is what costs.
  template <typename Row>
  __device__ uint32_t Collect(const Row& row, Word bound, Word own) {
    select_.StartCollecting();
    if (own != 0 && own >= bound) select_.Add(own, list_, capacity_);
    const auto bound_key = static_cast<UnsignedOf<kBytes>>(bound >> 32);
    const uint32_t own_index = own == 0 ? ~0u : IndexOfWord(own);
    row.ForEachKeyFrom(bound_key, [&](auto key, uint32_t index) {
      if (index == own_index) return;
      const Word word = MakeWord<kBytes>(key, index);
      if (word >= bound) select_.Add(word, list_, capacity_);
    });
    return select_.Collected();
  }

  Shared& shared_;
  Select select_;
  Word* list_;
  uint32_t capacity_;
  uint32_t k_;
  uint32_t enough_;
};

template <int kBytes, int kThreads, int kVectors>
__global__ void __launch_bounds__(kThreads, kThreads == 1024 ? 1 : 768 / kThreads)
    Registers(const __grid_constant__ CudaSequences all, uint32_t capacity) {
  using Selection = RegisterSelect<kBytes, kThreads, kVectors>;
  __shared__ typename Selection::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  Selection selection(&shared, reinterpret_cast<WordFor<kBytes>*>(dynamic), capacity, all.k);
  for (uint64_t s = blockIdx.x; s < all.count; s += gridDim.x) selection.Run(CudaSequence<kBytes>(all, s));
}

using Launcher = void(const CudaSequences& all, uint32_t capacity, uint32_t blocks, cudaStream_t stream);

template <int kBytes>
constexpr uint32_t kMaxCapacity = kBytes == 8 ? 4096 : 8192;

// A kernel for sequences of up to kThreads * kVectors vectors.
struct Variant {
  uint32_t threads;
  uint32_t vectors;
  bool (*allow)(std::string* why_not);
  Launcher* launch;
};

template <int kBytes, int kThreads, int kVectors>
constexpr Variant VariantOf() {
  return {kThreads, kThreads * kVectors,
          [](std::string* why_not) {
            return AllowSharedMemory(Registers<kBytes, kThreads, kVectors>,
                                     2 * kMaxCapacity<kBytes> * sizeof(WordFor<kBytes>), why_not);
          },
          [](const CudaSequences& all, uint32_t capacity, uint32_t blocks, cudaStream_t stream) {
            const uint32_t shared_bytes = 2 * capacity * sizeof(WordFor<kBytes>);
            Registers<kBytes, kThreads, kVectors><<<blocks, kThreads, shared_bytes, stream>>>(all, capacity);
          }};
}

template <int kBytes>
constexpr Variant kVariants[] = {VariantOf<kBytes, 32, 2>(),  VariantOf<kBytes, 32, 8>(),
                                 VariantOf<kBytes, 256, 1>(), VariantOf<kBytes, 256, 4>(),
                                 VariantOf<kBytes, 256, 8>(), VariantOf<kBytes, 512, 8>(),
                                 VariantOf<kBytes, 1024, 8>()};

class TopKRegisters final : public Kernel {
 public:
  TopKRegisters(const CudaSequences& sequences, const Variant& variant, uint32_t capacity, uint32_t blocks)
      : sequences_(sequences), variant_(variant), capacity_(capacity), blocks_(blocks) {}

  void Run(const KernelArguments& arguments) const override {
    variant_.launch(Bind(sequences_, arguments), capacity_, blocks_,
                    static_cast<cudaStream_t>(arguments.stream));
  }

 private:
  CudaSequences sequences_;
  const Variant& variant_;
  uint32_t capacity_;
  uint32_t blocks_;
};

template <int kBytes>
const Kernel* Create(const TopKProblem& problem, std::string* why_not) {
  const CudaDevice* device = GetCudaDevice(why_not);
  if (device == nullptr) return nullptr;
  const CudaSequences sequences = CudaSequencesOf(problem);
  const uint32_t n = sequences.n;
  const uint32_t k = sequences.k;
  if (sequences.axis[kInput] != 1) {
    *why_not = "the elements of a sequence are not neighbours";
    return nullptr;
  }
  if (k > kMaxCapacity<kBytes>) {
    *why_not = StrCat("K is ", k, "; there is shared memory for ", kMaxCapacity<kBytes>);
    return nullptr;
  }
  constexpr uint32_t kElements = 16 / kBytes;
  const uint64_t vectors = uint64_t{n} / kElements + 2;  // a sequence may begin and end anywhere
  for (const Variant& variant : kVariants<kBytes>) {
    const bool aligned = n == variant.vectors * kElements && n % kElements == 0;
    if (vectors > variant.vectors && !(aligned && SequencesAreAligned(sequences, kBytes))) continue;
    const bool is_warp = variant.threads == 32;
    if (is_warp && k * 16 > kPlacesPer16Groups * variant.threads) continue;
    if (!variant.allow(why_not)) return nullptr;
    const uint32_t capacity = std::min(std::bit_ceil(2 * k + 64), kMaxCapacity<kBytes>);
    // Blocks of one warp take several sequences each: a block starts in more time than a warp
    // takes to load one.
    const uint64_t most = is_warp ? device->multiprocessors * 32 : 0x7FFFFFFF;
    return new TopKRegisters(sequences, variant, capacity, std::min(sequences.count, most));
  }
  *why_not = StrCat(n, " elements of ", kBytes, " bytes do not fit the registers of a block");
  return nullptr;
}

}  // namespace

ANYDML_MODULE_EXPORT const Kernel* AnyDmlCreateTopKCudaRegisters(const TopKProblem& problem,
                                                                 std::string* why_not) {
  return DispatchBySize(problem.input.type, [&]<int kBytes>() { return Create<kBytes>(problem, why_not); });
}

}  // namespace anydml
