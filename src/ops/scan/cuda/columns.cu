// Contiguous sequences: a block has 32 of them, and its warps take turns at their rows.
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/scan/cuda/scan.cuh"

namespace anydml {
namespace {

constexpr uint32_t kColumns = kScanColumns, kWarps = kScanColumnWarps;
// Consecutive elements of a warp, all in flight at a time.
constexpr uint32_t kRowsPerWarp = 8;
constexpr uint32_t kTile = kWarps * kRowsPerWarp;

// A warp's elements from index `first` of a sequence on; those beyond the end, or of no sequence, are
// neutral.
template <typename Element, bool kMultiplies>
__device__ void LoadRows(const ScanParameters& p, const Element* input, uint64_t first, bool exists,
                         Element (&rows)[kRowsPerWarp]) {
  using T = typename ScanTotal<Element>::Type;
#pragma unroll
  for (uint32_t i = 0; i < kRowsPerWarp; ++i) {
    const uint64_t place = p.reverse ? p.length - 1 - (first + i) : first + i;
    rows[i] = exists && first + i < p.length ? input[place * p.input_stride]
                                             : ToElement<Element>(ScanNeutral<T, kMultiplies>());
  }
}

// The total of the previous warps, for each column, and that of all.
template <bool kMultiplies, typename T>
__device__ T WarpsBefore(T own, T* all) {
  __shared__ T totals[kWarps][kColumns + 1];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();  // the previous ones have been read
  totals[warp][lane] = own;
  __syncthreads();
  // Now a warp has a column, with a lane for each warp.
  const T column = ScanWarp<kMultiplies>(totals[lane][warp]);
  totals[lane][warp] = column;
  __syncthreads();
  *all = totals[kWarps - 1][lane];
  return warp == 0 ? ScanNeutral<T, kMultiplies>() : totals[warp - 1][lane];
}

// The sequences at offsets `at`, a lane each.
template <typename Element, bool kMultiplies>
__device__ void ScanBlockOfColumns(const ScanParameters& p, const uint64_t (&at)[2], bool exists) {
  using T = typename ScanTotal<Element>::Type;
  const auto* input = static_cast<const Element*>(p.input) + at[ScanLoops::kInput];
  auto* output = static_cast<Element*>(p.output) + at[ScanLoops::kOutput];
  T running = ScanNeutral<T, kMultiplies>();
  Element next[kRowsPerWarp];
  const uint64_t own_first = threadIdx.x / 32 * kRowsPerWarp;
  LoadRows<Element, kMultiplies>(p, input, own_first, exists, next);
  for (uint64_t tile = 0; tile < p.length; tile += kTile) {
    const uint64_t first = tile + own_first;
    T x[kRowsPerWarp];
#pragma unroll
    for (uint32_t i = 0; i < kRowsPerWarp; ++i) x[i] = ToTotal(next[i]);
    if (tile + kTile < p.length) LoadRows<Element, kMultiplies>(p, input, first + kTile, exists, next);
    T own = x[0], all;
#pragma unroll
    for (uint32_t i = 1; i < kRowsPerWarp; ++i) own = ScanCombine<T, kMultiplies>(own, x[i]);
    T total = ScanCombine<T, kMultiplies>(running, WarpsBefore<kMultiplies>(own, &all));
    running = ScanCombine<T, kMultiplies>(running, all);
#pragma unroll
    for (uint32_t i = 0; i < kRowsPerWarp; ++i) {
      const T with_own = ScanCombine<T, kMultiplies>(total, x[i]);
      const uint64_t place = p.reverse ? p.length - 1 - (first + i) : first + i;
      if (exists && first + i < p.length) {
        output[place * p.output_stride] = ToElement<Element>(p.exclusive ? total : with_own);
      }
      total = with_own;
    }
  }
}

template <typename Element, bool kMultiplies>
__global__ void __launch_bounds__(kColumns* kWarps) ScanColumns(const __grid_constant__ ScanParameters p) {
  const uint64_t groups = (uint64_t{p.sequences} + kColumns - 1) / kColumns;
  for (uint64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    const uint64_t sequence = group * kColumns + threadIdx.x % 32;
    const bool exists = sequence < p.sequences;
    uint64_t at[2];
    p.nest.OffsetsOf(static_cast<uint32_t>(exists ? sequence : 0), at);
    ScanBlockOfColumns<Element, kMultiplies>(p, at, exists);
  }
}

class ScanColumnsKernel final : public Kernel {
 public:
  ScanColumnsKernel(const ScanProblem& problem, const DeviceTraits& device)
      : problem_(problem), plan_(MakeScanPlan(problem, ScanKernel::kColumns, device)) {}

  Status Run(const KernelArguments& arguments) const override {
    ScanParameters p = plan_.parameters;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    DispatchScanOnDevice(problem_, [&]<typename Element, bool kMultiplies>() {
      chain.Launch(ScanColumns<Element, kMultiplies>, plan_.grid, p);
    });
    return {};
  }

 private:
  ScanProblem problem_;
  ScanPlan plan_;
};

}  // namespace

std::string ScanCudaColumnsBetterNot(const ScanProblem& problem, const LowerContext&) {
  if (!NeighboursAreBeside(MakeScanLoops(problem))) return "neighbours in memory are in the same sequence";
  return {};
}

std::unique_ptr<const Kernel> CreateScanCudaColumns(const ScanProblem& problem, const LowerContext& context,
                                                    std::string*) {
  return std::make_unique<ScanColumnsKernel>(problem, *context.device);
}

}  // namespace anydml
