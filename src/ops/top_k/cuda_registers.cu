// cuda.registers: a block (of one warp or more) per sequence, which it reads once and keeps in
// registers. The K-th best of the bests of a few times K groups bounds the K best: few more reach
// it. Groups are strided, so that sorted sequences spread over them.
#include <algorithm>
#include <bit>

#include "ops/top_k/cuda_launch.h"
#include "ops/top_k/cuda_select.cuh"
#include "ops/top_k/cuda_sequences.cuh"
#include "ops/module.h"

namespace anydml {
namespace {

template <int kBytes, int kThreads, int kVectors>
class RegisterRow {
 public:
  using Word = WordFor<kBytes>;
  using Key = UnsignedOf<kBytes>;
  static constexpr int kElements = KeyVector<kBytes>::kElements;

  // Loads first and converts then, so that all loads are under way together.
  __device__ explicit RegisterRow(const CudaSequence<kBytes>& sequence) : first_(sequence.FirstOf(0)) {
    const uint32_t vectors = sequence.vectors();
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const uint4 loaded = VectorOf(v) < vectors ? sequence.Load(VectorOf(v)) : make_uint4(0, 0, 0, 0);
      keys_[v] = {{loaded.x, loaded.y, loaded.z, loaded.w}};
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      ElementsToKeys(sequence.order(), &keys_[v]);
      if (!sequence.IsWhole(VectorOf(v))) sequence.ClearOutside(VectorOf(v), &keys_[v]);
    }
  }

  // visit(key, index) for every element of this thread, indices ascending.
  template <typename Visit>
  __device__ void ForEachKey(Visit&& visit) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const KeyVector<kBytes> keys = Again(keys_[v]);
      const uint32_t first = Again(IndexOf(v, 0));
#pragma unroll
      for (int e = 0; e < kElements; ++e) visit(keys[e], first + e);
    }
  }
  template <typename Visit>
  __device__ void ForEachWord(Visit&& visit) const {
    ForEachKey([&](Key key, uint32_t index) { visit(MakeWord<kBytes>(key, index)); });
  }

  // visit(word) with the best of each of kGroups groups.
  template <int kGroups, typename Visit>
  __device__ void ForEachBest(Visit&& visit) const {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      Key best = 0;
      int at = group * kElements;  // of the best: a constant in every selection
#pragma unroll
      for (int v = group; v < kVectors; v += kGroups) {
        const KeyVector<kBytes> keys = Again(keys_[v]);
#pragma unroll
        for (int e = 0; e < kElements; ++e) {
          if (keys[e] > best) {
            best = keys[e];
            at = v * kElements + e;
          }
        }
      }
      visit(MakeWord<kBytes>(best, IndexOf(at / kElements, at % kElements)));
    }
  }

 private:
  // Hides that a value is the same as before: unpacked and widened once for all uses, the keys and
  // indices would not fit into the registers.
  static __device__ uint32_t Again(uint32_t value) {
    asm volatile("" : "+r"(value));
    return value;
  }
  static __device__ KeyVector<kBytes> Again(KeyVector<kBytes> keys) {
#pragma unroll
    for (uint32_t& word : keys.words) word = Again(word);
    return keys;
  }
  static __device__ uint32_t VectorOf(int v) { return v * kThreads + threadIdx.x; }
  __device__ uint32_t IndexOf(int v, int e) const { return first_ + VectorOf(v) * kElements + e; }

  int32_t first_;
  KeyVector<kBytes> keys_[kVectors];
};

// What groups are worth: up to this many places for every 16 groups. Those that reach the bound
// are then at most 1.7 times as many as places.
constexpr uint32_t kPlacesPer16Groups = 11;

template <int kBytes, int kThreads, int kVectors>
__global__ void __launch_bounds__(kThreads, kThreads == 1024 ? 1 : 768 / kThreads)
    Registers(const __grid_constant__ CudaSequences all, uint32_t capacity) {
  using Word = WordFor<kBytes>;
  using Select = BlockSelect<Word, kThreads, 4 * kThreads>;
  constexpr int kManyGroups = kVectors < 4 ? 1 : 4;
  __shared__ typename Select::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  Word* list = reinterpret_cast<Word*>(dynamic);
  Select select(&shared);
  const uint32_t k = all.k;
  const uint32_t enough = min(k + k / 8 + 4, capacity);

  for (uint64_t s = blockIdx.x; s < all.count; s += gridDim.x) {
    const CudaSequence<kBytes> sequence(all, s);
    const RegisterRow<kBytes, kThreads, kVectors> row(sequence);
    const auto words = [&](auto&& visit) { row.ForEachWord(visit); };
    const auto bound_from = [&](auto&& for_each) {
      WordRange<Word> range = select.RangeOf(for_each);
      range.worst = select.Bound(for_each, range, k, enough);
      return range;
    };
    WordRange<Word> range;
    if (k * 16 <= kPlacesPer16Groups * kThreads) {
      range = bound_from([&](auto&& visit) { row.template ForEachBest<1>(visit); });
    } else if (k * 16 <= kPlacesPer16Groups * kThreads * kManyGroups) {
      range = bound_from([&](auto&& visit) { row.template ForEachBest<kManyGroups>(visit); });
    } else {
      range = bound_from(words);
    }

    const auto collect = [&] {
      const auto bound = static_cast<UnsignedOf<kBytes>>(range.worst >> 32);
      select.StartCollecting();
      row.ForEachKey([&](auto key, uint32_t index) {
        if (key < bound) return;
        const Word word = MakeWord<kBytes>(key, index);
        if (word >= range.worst) select.Add(word, list, capacity);
      });
      return select.Collected();
    };
    uint32_t m = collect();
    if (m > capacity) {  // the best ones crowd in few groups
      range.worst = select.Bound(words, range, k, enough);
      m = collect();
    }
    const Word* sorted = select.Sort(list, list + capacity, m, range);
    for (uint32_t j = threadIdx.x; j < k; j += kThreads) sequence.Store(j, sorted[j]);
    __syncthreads();
  }
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
constexpr Variant kVariants[] = {VariantOf<kBytes, 32, 8>(), VariantOf<kBytes, 256, 1>(),
                                 VariantOf<kBytes, 256, 4>(), VariantOf<kBytes, 256, 8>(),
                                 VariantOf<kBytes, 512, 8>(), VariantOf<kBytes, 1024, 8>()};

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
