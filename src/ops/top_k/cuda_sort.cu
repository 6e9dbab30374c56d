// cuda.sort: sorts whole sequences, one after the other, by CUB's radix sort, which is stable: of
// equal keys the lower index stays ahead. For many places of sequences too long for buckets.
#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "ops/top_k/cuda_launch.h"
#include "ops/top_k/cuda_sequences.cuh"
#include "ops/module.h"

namespace anydml {
namespace {

constexpr int kThreads = 256;
constexpr uint64_t kMaxSequences = 4096;  // some ten launches each

// Narrow keys are sorted as uint32_t: every type of keys is a sort of its own to compile.
template <int kBytes>
using SortKey = std::conditional_t<kBytes == 8, uint64_t, uint32_t>;

// Inverted keys, so that the best come first, and their indices.
template <int kBytes>
__global__ void __launch_bounds__(kThreads) MakePairs(const __grid_constant__ CudaSequences all, uint64_t s,
                                                      SortKey<kBytes>* keys, uint32_t* indices) {
  const uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= all.n) return;
  const CudaSequence<kBytes> sequence(all, s);
  keys[i] = static_cast<UnsignedOf<kBytes>>(~sequence.KeyAt(i));
  indices[i] = i;
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    StorePlaces(const __grid_constant__ CudaSequences all, uint64_t s, const SortKey<kBytes>* keys,
                const uint32_t* indices) {
  const uint64_t j = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (j >= all.k) return;
  const auto key = static_cast<UnsignedOf<kBytes>>(~keys[j]);
  CudaSequence<kBytes>(all, s).Store(j, MakeWord<kBytes>(key, indices[j]));
}

// The temporary resource: keys and indices of one sequence, twice, and what the sort needs.
template <int kBytes>
class Pairs {
 public:
  Pairs(std::byte* temporary, uint32_t n)
      : keys(Take<SortKey<kBytes>>(&temporary, n), Take<SortKey<kBytes>>(&temporary, n)),
        indices(Take<uint32_t>(&temporary, n), Take<uint32_t>(&temporary, n)),
        rest(temporary) {}

  // Afterwards the current buffers of `keys` and `indices` are in order. Without `scratch` only
  // says how much of it is needed.
  cudaError_t Sort(void* scratch, size_t* scratch_bytes, uint32_t n, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortPairs(scratch, *scratch_bytes, keys, indices, n, 0, 8 * kBytes, stream);
  }

  cub::DoubleBuffer<SortKey<kBytes>> keys;
  cub::DoubleBuffer<uint32_t> indices;
  std::byte* rest;

 private:
  template <typename T>
  static T* Take(std::byte** from, uint32_t n) {
    T* taken = reinterpret_cast<T*>(*from);
    *from += (uint64_t{n} * sizeof(T) + 255) / 256 * 256;
    return taken;
  }
};

template <int kBytes>
class TopKSort final : public Kernel {
 public:
  TopKSort(const CudaSequences& sequences, size_t scratch_bytes)
      : sequences_(sequences), scratch_bytes_(scratch_bytes) {}

  uint64_t temporary_bytes() const override {
    return reinterpret_cast<uintptr_t>(Pairs<kBytes>(nullptr, sequences_.n).rest) + scratch_bytes_;
  }

  void Run(const KernelArguments& arguments) const override {
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    const CudaSequences all = Bind(sequences_, arguments);
    for (uint64_t s = 0; s < all.count; ++s) {
      Pairs<kBytes> pairs(arguments.temporary.data, all.n);
      MakePairs<kBytes>
          <<<BlocksFor(all.n), kThreads, 0, stream>>>(all, s, pairs.keys.Current(), pairs.indices.Current());
      size_t scratch_bytes = scratch_bytes_;
      pairs.Sort(pairs.rest, &scratch_bytes, all.n, stream);
      StorePlaces<kBytes>
          <<<BlocksFor(all.k), kThreads, 0, stream>>>(all, s, pairs.keys.Current(), pairs.indices.Current());
    }
  }

 private:
  static uint32_t BlocksFor(uint32_t elements) { return (elements - 1) / kThreads + 1; }

  CudaSequences sequences_;
  size_t scratch_bytes_;
};

template <int kBytes>
const Kernel* Create(const TopKProblem& problem, std::string* why_not) {
  if (GetCudaDevice(why_not) == nullptr) return nullptr;
  const CudaSequences sequences = CudaSequencesOf(problem);
  if (sequences.count > kMaxSequences) {
    *why_not = StrCat(sequences.count, " sequences are too many to sort one after the other");
    return nullptr;
  }
  size_t scratch_bytes = 0;
  const cudaError_t error =
      Pairs<kBytes>(nullptr, sequences.n).Sort(nullptr, &scratch_bytes, sequences.n, nullptr);
  if (error != cudaSuccess) {
    cudaGetLastError();
    *why_not = StrCat("the sort does not say what memory it needs: ", cudaGetErrorString(error));
    return nullptr;
  }
  return new TopKSort<kBytes>(sequences, scratch_bytes);
}

}  // namespace

ANYDML_MODULE_EXPORT const Kernel* AnyDmlCreateTopKCudaSort(const TopKProblem& problem,
                                                            std::string* why_not) {
  return DispatchBySize(problem.input.type, [&]<int kBytes>() { return Create<kBytes>(problem, why_not); });
}

}  // namespace anydml
