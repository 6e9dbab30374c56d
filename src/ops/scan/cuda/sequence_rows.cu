// Rows: a block, or a warp, loops over its sequence tile by tile. The next tile is loaded while one is
// summed.
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/units.h"
#include "ops/scan/cuda/scan.cuh"

namespace anydml {
namespace {

// Units per thread and tile: 32 lanes have contiguous units, and a warp has consecutive rows of these.
constexpr uint32_t kUnits = 2;

// A part of a sequence: `count` elements from scan position `begin` on.
struct Piece {
  uint64_t input;  // first element of the sequence
  uint64_t output;
  uint32_t begin;
  uint32_t count;
};

template <typename Element>
struct alignas(16) Unit {
  static constexpr uint32_t kCount = 16 / sizeof(Element);
  Element elements[kCount];
};

// Converts between the order of memory and that of the sequence. Not done at the load, which would have to
// wait for the data.
template <typename Element>
__device__ Unit<Element> InOrder(const ScanParameters& p, const Unit<Element>& unit) {
  if (!p.in_units || !p.reverse) return unit;
  constexpr uint32_t kCount = Unit<Element>::kCount;
  Unit<Element> flipped;
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) flipped.elements[i] = unit.elements[kCount - 1 - i];
  return flipped;
}

__device__ inline uint64_t Position(const ScanParameters& p, uint64_t at) {
  return p.reverse ? p.length - 1 - at : at;
}

// The unit whose first element is `at` from the piece's begin; elements beyond the end are neutral. In memory
// order: a reversed sequence's unit comes from the other end, its last element first.
template <typename Element, bool kMultiplies>
__device__ Unit<Element> LoadUnit(const ScanParameters& p, const Piece& piece, uint64_t at) {
  using T = typename ScanTotal<Element>::Type;
  constexpr uint32_t kCount = Unit<Element>::kCount;
  const auto* input = static_cast<const Element*>(p.input) + piece.input;
  Unit<Element> unit;
  if (p.in_units && at < piece.count) {
    const uint64_t first = piece.begin + at;
    return *reinterpret_cast<const Unit<Element>*>(input + (p.reverse ? p.length - kCount - first : first));
  }
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) {
    unit.elements[i] = at + i < piece.count ? input[Position(p, piece.begin + at + i) * p.input_stride]
                                            : ToElement<Element>(ScanNeutral<T, kMultiplies>());
  }
  return unit;
}

template <typename Element>
__device__ void StoreUnit(const ScanParameters& p, const Piece& piece, uint64_t at,
                          const Unit<Element>& unit) {
  constexpr uint32_t kCount = Unit<Element>::kCount;
  auto* output = static_cast<Element*>(p.output) + piece.output;
  if (at >= piece.count) return;
  if (p.in_units) {
    const uint64_t first = piece.begin + at;
    *reinterpret_cast<Unit<Element>*>(output + (p.reverse ? p.length - kCount - first : first)) = unit;
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) {
    if (at + i < piece.count) output[Position(p, piece.begin + at + i) * p.output_stride] = unit.elements[i];
  }
}

// The total before each warp of a block, and that of all; for whole blocks.
template <uint32_t kGroup, bool kMultiplies, typename T>
__device__ T TotalBefore(T warp_total, T* all) {
  constexpr uint32_t kWarps = kGroup / 32;
  if constexpr (kWarps == 1) {
    *all = warp_total;
    return ScanNeutral<T, kMultiplies>();
  } else {
    __shared__ T totals[kWarps];
    __syncthreads();  // the previous ones have been read
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = warp_total;
    __syncthreads();
    T before = ScanNeutral<T, kMultiplies>(), sum = before;
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) {
      if (w == threadIdx.x / 32) before = sum;
      sum = ScanCombine<T, kMultiplies>(sum, totals[w]);
    }
    *all = sum;
    return before;
  }
}

// The begin of a thread's unit `u` in a tile.
template <typename Element>
__device__ uint32_t PlaceInTile(uint32_t u) {
  return ((threadIdx.x / 32 * kUnits + u) * 32 + threadIdx.x % 32) * Unit<Element>::kCount;
}

// Sums the elements of `piece`, starting with `running`; returns the total. kWrites: also writes the running
// totals.
template <typename Element, bool kMultiplies, uint32_t kGroup, bool kWrites>
__device__ typename ScanTotal<Element>::Type ScanPiece(const ScanParameters& p, const Piece& piece,
                                                       typename ScanTotal<Element>::Type running) {
  using T = typename ScanTotal<Element>::Type;
  constexpr uint32_t kCount = Unit<Element>::kCount, kTile = kGroup * kUnits * kCount;
  Unit<Element> next[kUnits];
#pragma unroll
  for (uint32_t u = 0; u < kUnits; ++u) {
    next[u] = LoadUnit<Element, kMultiplies>(p, piece, PlaceInTile<Element>(u));
  }
  for (uint64_t tile = 0; tile < piece.count; tile += kTile) {
    Unit<Element> units[kUnits];
#pragma unroll
    for (uint32_t u = 0; u < kUnits; ++u) units[u] = InOrder(p, next[u]);
    if (tile + kTile < piece.count) {
#pragma unroll
      for (uint32_t u = 0; u < kUnits; ++u) {
        next[u] = LoadUnit<Element, kMultiplies>(p, piece, tile + kTile + PlaceInTile<Element>(u));
      }
    }
    // Before each unit, within the warp.
    T before[kUnits], warp_total = ScanNeutral<T, kMultiplies>();
#pragma unroll
    for (uint32_t u = 0; u < kUnits; ++u) {
      T own = ToTotal(units[u].elements[0]);
#pragma unroll
      for (uint32_t i = 1; i < kCount; ++i) {
        own = ScanCombine<T, kMultiplies>(own, ToTotal(units[u].elements[i]));
      }
      const T with_own = ScanWarp<kMultiplies>(own);
      const T lane_before = __shfl_up_sync(~0u, with_own, 1);
      before[u] = threadIdx.x % 32 == 0 ? warp_total : ScanCombine<T, kMultiplies>(warp_total, lane_before);
      warp_total = ScanCombine<T, kMultiplies>(warp_total, __shfl_sync(~0u, with_own, 31));
    }
    T all;
    const T block_before = TotalBefore<kGroup, kMultiplies>(warp_total, &all);
    if constexpr (kWrites) {
      const T start = ScanCombine<T, kMultiplies>(running, block_before);
#pragma unroll
      for (uint32_t u = 0; u < kUnits; ++u) {
        T total = ScanCombine<T, kMultiplies>(start, before[u]);
        Unit<Element> results;
#pragma unroll
        for (uint32_t i = 0; i < kCount; ++i) {
          const T with_own = ScanCombine<T, kMultiplies>(total, ToTotal(units[u].elements[i]));
          results.elements[i] = ToElement<Element>(p.exclusive ? total : with_own);
          total = with_own;
        }
        StoreUnit(p, piece, tile + PlaceInTile<Element>(u), InOrder(p, results));
      }
    }
    running = ScanCombine<T, kMultiplies>(running, all);
  }
  return running;
}

template <typename Element, bool kMultiplies, uint32_t kGroup>
__global__ void __launch_bounds__(kGroup) ScanRows(const __grid_constant__ ScanParameters p) {
  using T = typename ScanTotal<Element>::Type;
  for (uint64_t row = blockIdx.x; row < p.sequences; row += gridDim.x) {
    uint64_t at[2];
    p.nest.OffsetsOf(static_cast<uint32_t>(row), at);
    const Piece piece = {at[ScanLoops::kInput], at[ScanLoops::kOutput], 0, p.length};
    ScanPiece<Element, kMultiplies, kGroup, true>(p, piece, ScanNeutral<T, kMultiplies>());
  }
}

// cuda.split: a block per part. First the parts' totals, then the totals before each, then the elements.
__device__ inline Piece PartOf(const ScanParameters& p, uint32_t number) {
  const uint32_t sequence = number / p.parts, part = number % p.parts;
  uint64_t at[2];
  p.nest.OffsetsOf(sequence, at);
  const uint32_t begin = part * p.part_length;
  return {at[ScanLoops::kInput], at[ScanLoops::kOutput], begin, min(p.part_length, p.length - begin)};
}

template <typename Element, bool kMultiplies>
__global__ void __launch_bounds__(kScanRowThreads) AddParts(const __grid_constant__ ScanParameters p) {
  using T = typename ScanTotal<Element>::Type;
  LetNextStart();
  const T total = ScanPiece<Element, kMultiplies, kScanRowThreads, false>(p, PartOf(p, blockIdx.x),
                                                                          ScanNeutral<T, kMultiplies>());
  if (threadIdx.x == 0) static_cast<T*>(p.totals)[blockIdx.x] = total;
}

// Every block sums the parts before its own, in an order that depends only on their number.
template <typename Element, bool kMultiplies>
__global__ void __launch_bounds__(kScanRowThreads) ScanParts(const __grid_constant__ ScanParameters p) {
  using T = typename ScanTotal<Element>::Type;
  WaitForPrevious();
  const uint32_t first = blockIdx.x / p.parts * p.parts;
  T own = ScanNeutral<T, kMultiplies>();
  for (uint32_t i = first + threadIdx.x; i < blockIdx.x; i += kScanRowThreads) {
    own = ScanCombine<T, kMultiplies>(own, static_cast<const T*>(p.totals)[i]);
  }
  T running;
  TotalBefore<kScanRowThreads, kMultiplies>(__shfl_sync(~0u, ScanWarp<kMultiplies>(own), 31), &running);
  ScanPiece<Element, kMultiplies, kScanRowThreads, true>(p, PartOf(p, blockIdx.x), running);
}

class ScanRowsKernel final : public Kernel {
 public:
  ScanRowsKernel(const ScanProblem& problem, ScanKernel kernel, const DeviceTraits& device)
      : problem_(problem), plan_(MakeScanPlan(problem, kernel, device)) {}

  uint64_t temporary_bytes() const override { return plan_.temporary_bytes; }

  Status Run(const KernelArguments& arguments) const override {
    ScanParameters p = plan_.parameters;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    p.totals = arguments.temporary.data;
    p.in_units = plan_.rows_of_units && (AddressOf(p.input) | AddressOf(p.output)) % kMaxUnitBytes == 0;
    KernelChain chain(arguments.stream);
    DispatchScanOnDevice(problem_, [&]<typename Element, bool kMultiplies>() {
      if (plan_.kernel == ScanKernel::kSplit) {
        chain.Launch(AddParts<Element, kMultiplies>, plan_.grid, p);
        chain.Launch(ScanParts<Element, kMultiplies>, plan_.grid, p);
      } else if (plan_.grid.threads == kScanLanes) {
        chain.Launch(ScanRows<Element, kMultiplies, kScanLanes>, plan_.grid, p);
      } else {
        chain.Launch(ScanRows<Element, kMultiplies, kScanRowThreads>, plan_.grid, p);
      }
    });
    return {};
  }

 private:
  ScanProblem problem_;
  ScanPlan plan_;
};

// With this many, blocks of cuda.rows keep the device busy; with fewer, those of cuda.columns do if they
// apply.
constexpr uint64_t kManySequences = 512, kManyBeside = 32;

}  // namespace

std::string ScanCudaSplitBetterNot(const ScanProblem& problem, const LowerContext&) {
  const uint64_t length = problem.output.sizes[problem.axis];
  if (length < 4 * kScanPartMultiple) return StrCat("sequences have ", length, " elements, too few to share");
  const uint64_t sequences = ElementCount(problem.output) / length;
  const bool beside = NeighboursAreBeside(MakeScanLoops(problem));
  if (sequences < (beside ? kManyBeside : kManySequences)) return {};
  return StrCat(sequences, " sequences keep the device busy");
}

std::unique_ptr<const Kernel> CreateScanCudaSplit(const ScanProblem& problem, const LowerContext& context,
                                                  std::string* why_not) {
  const uint64_t sequences = ElementCount(problem.output) / problem.output.sizes[problem.axis];
  if (sequences > kScanMaxSplitSequences) {
    *why_not = "there are too many sequences to keep totals of";
    return nullptr;
  }
  return std::make_unique<ScanRowsKernel>(problem, ScanKernel::kSplit, *context.device);
}

std::unique_ptr<const Kernel> CreateScanCudaRows(const ScanProblem& problem, const LowerContext& context,
                                                 std::string*) {
  return std::make_unique<ScanRowsKernel>(problem, ScanKernel::kRows, *context.device);
}

}  // namespace anydml
