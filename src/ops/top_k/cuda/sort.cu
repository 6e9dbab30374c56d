// cuda.sort: sorts whole sequences, one after the other, with CUB's radix sort, which is stable: among equal
// keys the lower index stays first. For many places of sequences too long for buckets.
#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "kernel/scratch_layout.h"
#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {
namespace {

constexpr int kThreads = 256;
constexpr uint64_t kMaxSequences = 4096;  // about ten launches each

// Narrow keys are sorted as uint32_t, because every key type is another sort to compile.
template <int kBytes>
using SortKey = std::conditional_t<kBytes == 8, uint64_t, uint32_t>;

// Inverted keys, so that the best come first, and their indices.
template <int kBytes>
__global__ void __launch_bounds__(kThreads) MakePairs(const __grid_constant__ TopKSequences all, uint64_t s,
                                                      SortKey<kBytes>* keys, uint32_t* indices) {
  const uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= all.n) return;
  const CudaSequence<kBytes> sequence(all, s);
  keys[i] = static_cast<UnsignedOf<kBytes>>(~sequence.KeyAt(i));
  indices[i] = i;
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    StorePlaces(const __grid_constant__ TopKSequences all, uint64_t s, const SortKey<kBytes>* keys,
                const uint32_t* indices) {
  const uint64_t j = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (j >= all.k) return;
  const auto key = static_cast<UnsignedOf<kBytes>>(~keys[j]);
  CudaSequence<kBytes>(all, s).Store(j, MakeWord<kBytes>(key, indices[j]));
}

// Keys and indices of one sequence, twice: the present ones, and the sort's output.
template <int kBytes>
struct Pairs {
  // Afterwards the current buffers of `keys` and `indices` are sorted. Without `scratch` it only returns how
  // much is needed.
  cudaError_t Sort(void* scratch, size_t* scratch_bytes, uint32_t n, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortPairs(scratch, *scratch_bytes, keys, indices, n, 0, 8 * kBytes, stream);
  }

  cub::DoubleBuffer<SortKey<kBytes>> keys;
  cub::DoubleBuffer<uint32_t> indices;
};

template <int kBytes>
class TopKSort final : public Kernel {
 public:
  using Key = SortKey<kBytes>;

  TopKSort(const TopKSequences& sequences, size_t scratch_bytes)
      : sequences_(sequences),
        keys_{layout_.Add("keys", KeysBytes(), kAlignment),
              layout_.Add("sorted keys", KeysBytes(), kAlignment)},
        indices_{layout_.Add("indices", IndicesBytes(), kAlignment),
                 layout_.Add("sorted indices", IndicesBytes(), kAlignment)},
        scratch_(layout_.Add("the sort's own", scratch_bytes, kAlignment)) {}

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    const TopKSequences all = Bind(sequences_, arguments);
    const Buffer& memory = arguments.temporary;
    for (uint64_t s = 0; s < all.count; ++s) {
      Pairs<kBytes> pairs = {{keys_[0].template In<Key>(memory), keys_[1].template In<Key>(memory)},
                             {indices_[0].In<uint32_t>(memory), indices_[1].In<uint32_t>(memory)}};
      MakePairs<kBytes>
          <<<BlocksFor(all.n), kThreads, 0, stream>>>(all, s, pairs.keys.Current(), pairs.indices.Current());
      size_t scratch_bytes = scratch_.bytes;
      const cudaError_t error = pairs.Sort(scratch_.In(memory).data, &scratch_bytes, all.n, stream);
      if (error != cudaSuccess) {
        return Status(Code::kDriverInternal, StrCat("sorting ", all.n, " keys: ", cudaGetErrorString(error)));
      }
      StorePlaces<kBytes>
          <<<BlocksFor(all.k), kThreads, 0, stream>>>(all, s, pairs.keys.Current(), pairs.indices.Current());
    }
    return {};
  }

 private:
  static constexpr uint64_t kAlignment = 256;

  static uint32_t BlocksFor(uint32_t elements) { return (elements - 1) / kThreads + 1; }
  uint64_t KeysBytes() const { return sequences_.n * sizeof(Key); }
  uint64_t IndicesBytes() const { return sequences_.n * sizeof(uint32_t); }

  const TopKSequences sequences_;
  ScratchLayout layout_;  // before its pieces
  const ScratchLayout::Piece keys_[2];
  const ScratchLayout::Piece indices_[2];
  const ScratchLayout::Piece scratch_;
};

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext&, std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  if (sequences.count > kMaxSequences) {
    *why_not = StrCat(sequences.count, " sequences are too many to sort one after the other");
    return nullptr;
  }
  size_t scratch_bytes = 0;
  const cudaError_t error = Pairs<kBytes>{}.Sort(nullptr, &scratch_bytes, sequences.n, nullptr);
  if (error != cudaSuccess) {
    cudaGetLastError();
    *why_not = StrCat("the sort does not say what memory it needs: ", cudaGetErrorString(error));
    return nullptr;
  }
  return std::make_unique<TopKSort<kBytes>>(sequences, scratch_bytes);
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaSort(const TopKProblem& problem, const LowerContext& context,
                                                 std::string* why_not) {
  return DispatchBySize(problem.input.type,
                        [&]<int kBytes>() { return Create<kBytes>(problem, context, why_not); });
}

}  // namespace anydml
