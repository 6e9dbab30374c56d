#include "ops/device/cuda/block_scan.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/scan/nonzero_plan.h"

namespace anydml {
namespace {

template <typename Element>
__device__ bool IsNonzero(const NonzeroParameters& p, uint64_t number) {
  if (number >= p.elements) return false;
  uint64_t at[1] = {number};
  if (!p.contiguous) p.nest.OffsetsOf(static_cast<uint32_t>(number), at);
  return (static_cast<const Element*>(p.input)[at[0]] & p.mask) != 0;
}

__device__ void WriteRow(const NonzeroParameters& p, uint32_t number, uint32_t row) {
  uint32_t* const to = p.coordinates + row * p.row_stride;
  for (uint32_t c = p.columns; c-- > 0;) {
    uint32_t at;
    number = p.sizes[c].Divide(number, &at);
    to[c * p.column_stride] = at;
  }
}

// The elements from index `first` on, as many as a block has at a time; `before` were found earlier. Returns
// how many of them are not zero.
template <typename Element, uint32_t kGroup, bool kWrites>
__device__ uint32_t DoTile(const NonzeroParameters& p, uint64_t first, uint32_t before) {
  __shared__ uint32_t warp_counts[kGroup / 32];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint64_t own_first = first + warp * 32 * kNonzeroPerThread + lane;
  static_assert(kNonzeroPerThread <= 32);
  uint32_t kept = 0, own = 0;  // lane i keeps what was found in round i
#pragma unroll 4
  for (uint32_t i = 0; i < kNonzeroPerThread; ++i) {
    const uint32_t found = __ballot_sync(~0u, IsNonzero<Element>(p, own_first + i * 32));
    if (lane == i) kept = found;
    own += __popc(found);
  }
  __syncthreads();  // the previous counts have been read
  if (lane == 0) warp_counts[warp] = own;
  __syncthreads();
  uint32_t all = 0;
  for (uint32_t w = 0; w < kGroup / 32; ++w) {
    if (w == warp) before += all;
    all += warp_counts[w];
  }
  if constexpr (kWrites) {
#pragma unroll 1
    for (uint32_t i = 0; i < kNonzeroPerThread; ++i) {
      const uint32_t found = __shfl_sync(~0u, kept, i);
      if ((found >> lane & 1) != 0) {
        WriteRow(p, static_cast<uint32_t>(own_first + i * 32), before + __popc(found & ((1u << lane) - 1)));
      }
      before += __popc(found);
    }
  }
  return all;
}

template <typename Element>
__global__ void __launch_bounds__(kNonzeroThreads) CountTiles(const __grid_constant__ NonzeroParameters p) {
  LetNextStart();
  const uint64_t first = uint64_t{blockIdx.x} * kNonzeroThreads * kNonzeroPerThread;
  const uint32_t count = DoTile<Element, kNonzeroThreads, false>(p, first, 0);
  if (threadIdx.x == 0) p.counts[blockIdx.x] = count;
}

__global__ void __launch_bounds__(kNonzeroSmallThreads)
    AddUpCounts(const __grid_constant__ NonzeroParameters p) {
  __shared__ uint32_t warp_sums[kNonzeroSmallThreads / 32];
  WaitForPrevious();
  LetNextStart();
  uint32_t before = 0;
  for (uint64_t first = 0; first < p.tiles; first += kNonzeroSmallThreads) {
    const uint64_t tile = first + threadIdx.x;
    uint32_t all;
    const uint32_t own = tile < p.tiles ? p.counts[tile] : 0;
    const uint32_t before_own = SumBefore<kNonzeroSmallThreads>(own, warp_sums, &all);
    if (tile < p.tiles) p.counts[tile] = before + before_own;
    before += all;
    __syncthreads();  // the sums have been read
  }
  if (threadIdx.x == 0) *p.count_output = before;
}

template <typename Element>
__global__ void __launch_bounds__(kNonzeroThreads) WriteTiles(const __grid_constant__ NonzeroParameters p) {
  WaitForPrevious();
  DoTile<Element, kNonzeroThreads, true>(p, uint64_t{blockIdx.x} * kNonzeroThreads * kNonzeroPerThread,
                                         p.counts[blockIdx.x]);
}

template <typename Element>
__global__ void __launch_bounds__(kNonzeroSmallThreads) DoAll(const __grid_constant__ NonzeroParameters p) {
  uint32_t before = 0;
  for (uint64_t first = 0; first < p.elements; first += kNonzeroSmallThreads * kNonzeroPerThread) {
    before += DoTile<Element, kNonzeroSmallThreads, true>(p, first, before);
  }
  if (threadIdx.x == 0) *p.count_output = before;
}

template <typename Element>
class NonzeroCuda final : public Kernel {
 public:
  explicit NonzeroCuda(const NonzeroProblem& problem) : plan_(MakeNonzeroPlan(problem)) {}

  uint64_t temporary_bytes() const override { return plan_.temporary_bytes; }

  Status Run(const KernelArguments& arguments) const override {
    NonzeroParameters p = plan_.parameters;
    p.input = arguments.inputs[0].data;
    p.count_output = reinterpret_cast<uint32_t*>(arguments.outputs[0].data);
    p.coordinates = reinterpret_cast<uint32_t*>(arguments.outputs[1].data);
    p.counts = reinterpret_cast<uint32_t*>(arguments.temporary.data);
    KernelChain chain(arguments.stream);
    if (plan_.is_small) {
      chain.Launch(DoAll<Element>, 1, kNonzeroSmallThreads, p);
      return {};
    }
    chain.Launch(CountTiles<Element>, plan_.tiles_grid, p);
    chain.Launch(AddUpCounts, 1, kNonzeroSmallThreads, p);
    chain.Launch(WriteTiles<Element>, plan_.tiles_grid, p);
    return {};
  }

 private:
  NonzeroPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateNonzeroCuda(const NonzeroProblem& problem, const LowerContext&,
                                                std::string*) {
  switch (BitSize(problem.input.type)) {
    case 8:
      return std::make_unique<NonzeroCuda<uint8_t>>(problem);
    case 16:
      return std::make_unique<NonzeroCuda<uint16_t>>(problem);
    default:
      return std::make_unique<NonzeroCuda<uint32_t>>(problem);
  }
}

}  // namespace anydml
