// cuda.threads: many short rows, a thread for each.
//
// Words of 32 bits hold the index and as much of the key as fits beside it, so that a step of a network is
// two instructions. That is exact for narrow types; for others it is exact as long as the words of neighbours
// in the result differ by more than the index. If they do not, the thread sorts them by whole keys or, if the
// last place is concerned, selects again by whole keys. The leading bits that a row's 64-bit keys have in
// common are omitted.
#include <algorithm>
#include <bit>

#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/network.cuh"
#include "ops/top_k/cuda/sequences.cuh"
#include "ops/top_k/cuda/shared_rows.cuh"

namespace anydml {
namespace {

template <int kBytes>
constexpr int kThreads = kBytes == 8 ? 64 : 128;  // and rows per block
constexpr uint32_t kMaxElements = 128;

// Words of either size: the key, or its upper bits, above the complement of the index.
template <int kBytes, typename Word>
struct WordFormat {
  uint32_t index_mask;   // the low bits, for 32-bit words of longer keys
  uint32_t common_bits;  // omitted from 64-bit keys

  __device__ Word Make(UnsignedOf<kBytes> key, uint32_t index) const {
    if constexpr (sizeof(Word) > 4) {
      return MakeWord<kBytes>(key, index);
    } else if constexpr (kBytes == 8) {
      return (static_cast<uint32_t>(key << common_bits >> 32) & ~index_mask) + (index_mask - index);
    } else if constexpr (kBytes == 4) {
      return (key & ~index_mask) + (index_mask - index);
    } else {
      return uint32_t{key} << 16 | (0xFFFF - index);
    }
  }
  __device__ uint32_t IndexOf(Word word) const {
    if constexpr (sizeof(Word) > 4) {
      return IndexOfWord(word);
    } else if constexpr (kBytes >= 4) {
      return index_mask - (word & index_mask);
    } else {
      return 0xFFFF - (word & 0xFFFF);
    }
  }
  // Whether words contain all bits in which the keys differ.
  __device__ bool IsExact() const { return kBytes == 8 && common_bits >= 32u + __popc(index_mask); }
};

// The number of leading bits that the keys of this thread's row have in common, at most 63.
__device__ uint32_t CommonBits(const TopKSharedRows<8>& rows, const TopKSequences& all) {
  uint64_t different = 1;
  const uint64_t first = ElementToKey<8>(all.order, rows.Element(threadIdx.x, 0));
#pragma unroll 8
  for (uint32_t i = 1; i < all.n; ++i) {
    different |= ElementToKey<8>(all.order, rows.Element(threadIdx.x, i)) ^ first;
  }
  return __clzll(different);
}

// The best kPlaces of this thread's row, sorted; the best of the others goes to *rejected.
template <int kBytes, int kPlaces, typename Word>
__device__ void SelectFromRow(const TopKSharedRows<kBytes>& rows, const TopKSequences& all,
                              WordFormat<kBytes, Word> format, Word (&best)[kPlaces], Word* rejected) {
  constexpr int kElements = KeyVector<kBytes>::kElements;
  constexpr int kStep = kPlaces > kElements ? kPlaces : kElements;  // whole vectors and whole lists
#pragma unroll
  for (Word& word : best) word = 0;
  *rejected = 0;
  const auto take = [&](uint32_t first, auto is_inside) {
    Word words[kStep];
#pragma unroll
    for (int v = 0; v < kStep / kElements; ++v) {
      const uint32_t base = first + v * kElements;
      KeyVector<kBytes> keys{};
      if (is_inside(base)) {
        const uint4 loaded = rows.Vector(threadIdx.x, base / kElements);
        keys = {{loaded.x, loaded.y, loaded.z, loaded.w}};
        ElementsToKeys(all.order, &keys);
      }
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        words[v * kElements + e] = is_inside(base + e) ? format.Make(keys[e], base + e) : Word{0};
      }
    }
#pragma unroll
    for (int list = 0; list < kStep / kPlaces; ++list) {
      Word more[kPlaces];
#pragma unroll
      for (int i = 0; i < kPlaces; ++i) more[i] = words[list * kPlaces + i];
      SortDescending(more);
      KeepBest(best, more, [&](Word word) { *rejected = word > *rejected ? word : *rejected; });
    }
  };
  uint32_t first = 0;
#pragma unroll 1
  for (; first + kStep <= all.n; first += kStep) take(first, [](uint32_t) { return true; });
  if (first < all.n) take(first, [&](uint32_t i) { return i < all.n; });
}

// Corrects the order of `best` where short words do not determine it.
template <int kBytes, int kPlaces>
__device__ void ResolveDoubt(const TopKSharedRows<kBytes>& rows, const TopKSequences& all,
                             WordFormat<kBytes, uint32_t> format, uint32_t (&best)[kPlaces],
                             uint32_t rejected) {
  if (format.IsExact()) return;
  bool order_in_doubt = false;
  bool last_in_doubt = false;
#pragma unroll
  for (int i = 0; i < kPlaces; ++i) {
    const uint32_t next = i + 1 < kPlaces ? best[i + 1] : rejected;
    const bool same = (best[i] ^ next) <= format.index_mask;
    order_in_doubt |= same && i + 1 < all.k;
    last_in_doubt |= same && i + 1 == all.k;
  }
  if (!order_in_doubt && !last_in_doubt) return;
  const WordFormat<kBytes, WordFor<kBytes>> whole{};
  WordFor<kBytes> exact[kPlaces];
  if (last_in_doubt) {
    WordFor<kBytes> unused;
    SelectFromRow(rows, all, whole, exact, &unused);
  } else {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
      const uint32_t index = format.IndexOf(best[i]);
      exact[i] = i < all.k
                     ? whole.Make(ElementToKey<kBytes>(all.order, rows.Element(threadIdx.x, index)), index)
                     : 0;
    }
    SortDescending(exact);
  }
#pragma unroll
  for (int i = 0; i < kPlaces; ++i) best[i] = format.Make(0, min(whole.IndexOf(exact[i]), format.index_mask));
}

template <int kBytes, int kPlaces>
__global__ void __launch_bounds__(kThreads<kBytes>)
    Threads(const __grid_constant__ TopKSequences all, bool contiguous, uint32_t index_mask) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  const TopKSharedRows<kBytes> rows(reinterpret_cast<uint4*>(dynamic), all.n);
  // The places of a row are contiguous; an odd pitch keeps the lanes' rows in different banks.
  const uint32_t pitch = all.k | 1;
  auto* indices = reinterpret_cast<uint32_t*>(dynamic + kThreads<kBytes> * rows.vectors_per_row() * 16);
  const uint64_t first = uint64_t{blockIdx.x} * kThreads<kBytes>;
  const auto count = static_cast<uint32_t>(min(all.count - first, uint64_t{kThreads<kBytes>}));

  const uint64_t input_pitch = all.nest.loops[0].strides[kInput];
  const auto* input = reinterpret_cast<const UnsignedOf<kBytes>*>(all.input) + first * input_pitch;
  if (contiguous) {
    LoadContiguous<kThreads<kBytes>>(reinterpret_cast<const uint4*>(input), count, rows);
  } else {
    LoadElements<kThreads<kBytes>>(input, input_pitch, all.n, count, rows);
  }
  __syncthreads();
  if (threadIdx.x < count) {
    WordFormat<kBytes, uint32_t> format{index_mask, 0};
    if constexpr (kBytes == 8) format.common_bits = CommonBits(rows, all);
    uint32_t best[kPlaces];
    uint32_t rejected;
    SelectFromRow(rows, all, format, best, &rejected);
    if constexpr (kBytes >= 4) ResolveDoubt(rows, all, format, best, rejected);
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
      if (i < all.k) indices[threadIdx.x * pitch + i] = format.IndexOf(best[i]);
    }
  }
  __syncthreads();

  const auto& row_strides = all.nest.loops[0].strides;
  auto* values = reinterpret_cast<UnsignedOf<kBytes>*>(all.value);
  const Divisor by_k(all.k);
  for (uint32_t i = threadIdx.x; i < count * all.k; i += kThreads<kBytes>) {
    const uint32_t row = by_k.Divide(i);
    const uint32_t place = i - row * all.k;
    const uint32_t index = indices[row * pitch + place];
    values[(first + row) * row_strides[kValue] + place * all.axis[kValue]] = rows.Element(row, index);
    const uint64_t at = (first + row) * row_strides[kIndex] + place * all.axis[kIndex];
    if (all.wide_index) {
      reinterpret_cast<uint64_t*>(all.index)[at] = index;
    } else {
      reinterpret_cast<uint32_t*>(all.index)[at] = index;
    }
  }
}

template <int kBytes, int kPlaces>
class TopKThreads final : public Kernel {
 public:
  explicit TopKThreads(const TopKSequences& sequences) : sequences_(sequences) {
    constexpr uint32_t kElements = 16 / kBytes;
    const uint32_t n = sequences.n;
    const bool whole = n % kElements == 0;
    contiguous_ = whole && sequences.nest.loops[0].strides[kInput] == n;
    // Padding is word 0, for which an index is reserved; rows without padding need none.
    index_mask_ = std::bit_ceil(whole && n % kPlaces == 0 ? n : n + 1) - 1;
    shared_bytes_ = kThreads<kBytes> * ((n + kElements - 1) / kElements * 16 + (sequences.k | 1) * 4);
  }

  bool Allow(const DeviceTraits& device, std::string* why_not) const {
    return AllowSharedMemory(device, Threads<kBytes, kPlaces>, kMaxSharedBytes, why_not);
  }

  Status Run(const KernelArguments& arguments) const override {
    const auto blocks = static_cast<uint32_t>((sequences_.count - 1) / kThreads<kBytes> + 1);
    Threads<kBytes, kPlaces>
        <<<blocks, kThreads<kBytes>, shared_bytes_, static_cast<cudaStream_t>(arguments.stream)>>>(
            Bind(sequences_, arguments), contiguous_, index_mask_);
    return {};
  }

 private:
  static constexpr uint32_t kMaxSharedBytes = kThreads<kBytes> * (kMaxElements * kBytes + (kPlaces + 1) * 4);

  TopKSequences sequences_;
  bool contiguous_;
  uint32_t index_mask_;
  uint32_t shared_bytes_;
};

template <int kBytes, int kPlaces>
std::unique_ptr<const Kernel> CreateFor(const TopKSequences& sequences, const DeviceTraits& device,
                                        std::string* why_not) {
  auto kernel = std::make_unique<TopKThreads<kBytes, kPlaces>>(sequences);
  if (!kernel->Allow(device, why_not)) return nullptr;
  return kernel;
}

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext& context,
                                     std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  constexpr uint32_t kMaxPlaces = kBytes == 8 ? 16 : 32;
  constexpr uint64_t kMinRows = 1 << 14;  // fewer do not fill the device
  if (sequences.n > kMaxElements || sequences.k > kMaxPlaces) {
    *why_not = StrCat("K is ", sequences.k, " of ", sequences.n, "; a thread does ", kMaxPlaces, " of ",
                      kMaxElements);
  } else if (sequences.count < kMinRows || sequences.count / kThreads<kBytes> > 0x7FFFFFFE) {
    *why_not = StrCat("there are ", sequences.count, " sequences, not ", kMinRows, " or more");
  } else if (sequences.nest.rank != 1 || (sequences.axis[kInput] != 1 && sequences.n > 1)) {
    *why_not = "the sequences are not rows of a matrix";
  } else {
    if (sequences.k <= 8) return CreateFor<kBytes, 8>(sequences, *context.device, why_not);
    if (sequences.k <= 16) return CreateFor<kBytes, 16>(sequences, *context.device, why_not);
    if constexpr (kMaxPlaces == 32) return CreateFor<kBytes, 32>(sequences, *context.device, why_not);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaThreads(const TopKProblem& problem, const LowerContext& context,
                                                    std::string* why_not) {
  return DispatchBySize(problem.input.type,
                        [&]<int kBytes>() { return Create<kBytes>(problem, context, why_not); });
}

}  // namespace anydml
