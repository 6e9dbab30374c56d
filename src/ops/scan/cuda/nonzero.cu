#include <algorithm>

#include "kernel/scratch_layout.h"
#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_scan.cuh"
#include "ops/device/nest.h"
#include "ops/scan/nonzero.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kSmallThreads = 1024;
// Elements of a thread per tile: a warp's are neighbours, 32 at a time.
constexpr uint32_t kPerThread = 16;
// Up to here one block is done before three kernels could be started one after the other.
constexpr uint64_t kSmall = 4 * kSmallThreads * kPerThread;

struct Parameters {
  const void* input;
  uint32_t* count_output;
  uint32_t* coordinates;
  uint32_t* counts;  // per tile; then how many come before it
  uint32_t mask;
  uint32_t elements;
  uint32_t tiles;
  bool contiguous;
  DeviceNest<1> nest;  // row-major
  uint32_t columns;
  FastDivisor sizes[kMaxDimensions];
  uint64_t row_stride;
  uint64_t column_stride;
};

template <typename Element>
__device__ bool IsNonzero(const Parameters& p, uint64_t number) {
  if (number >= p.elements) return false;
  uint64_t at[1] = {number};
  if (!p.contiguous) p.nest.OffsetsOf(static_cast<uint32_t>(number), at);
  return (static_cast<const Element*>(p.input)[at[0]] & p.mask) != 0;
}

__device__ void WriteRow(const Parameters& p, uint32_t number, uint32_t row) {
  uint32_t* const to = p.coordinates + row * p.row_stride;
  for (uint32_t c = p.columns; c-- > 0;) {
    uint32_t at;
    number = p.sizes[c].Divide(number, &at);
    to[c * p.column_stride] = at;
  }
}

// The elements from number `first` on, as many as a block has at a time; `before` have been found before it.
// Returns how many of them are not zero.
template <typename Element, uint32_t kGroup, bool kWrites>
__device__ uint32_t DoTile(const Parameters& p, uint64_t first, uint32_t before) {
  __shared__ uint32_t warp_counts[kGroup / 32];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint64_t own_first = first + warp * 32 * kPerThread + lane;
  static_assert(kPerThread <= 32);
  uint32_t kept = 0, own = 0;  // lane i keeps what was found in round i
#pragma unroll 4
  for (uint32_t i = 0; i < kPerThread; ++i) {
    const uint32_t found = __ballot_sync(~0u, IsNonzero<Element>(p, own_first + i * 32));
    if (lane == i) kept = found;
    own += __popc(found);
  }
  __syncthreads();  // the counts before have been read
  if (lane == 0) warp_counts[warp] = own;
  __syncthreads();
  uint32_t all = 0;
  for (uint32_t w = 0; w < kGroup / 32; ++w) {
    if (w == warp) before += all;
    all += warp_counts[w];
  }
  if constexpr (kWrites) {
#pragma unroll 1
    for (uint32_t i = 0; i < kPerThread; ++i) {
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
__global__ void __launch_bounds__(kThreads) CountTiles(const __grid_constant__ Parameters p) {
  LetNextStart();
  const uint64_t first = uint64_t{blockIdx.x} * kThreads * kPerThread;
  const uint32_t count = DoTile<Element, kThreads, false>(p, first, 0);
  if (threadIdx.x == 0) p.counts[blockIdx.x] = count;
}

__global__ void __launch_bounds__(kSmallThreads) AddUpCounts(const __grid_constant__ Parameters p) {
  __shared__ uint32_t warp_sums[kSmallThreads / 32];
  WaitForPrevious();
  LetNextStart();
  uint32_t before = 0;
  for (uint64_t first = 0; first < p.tiles; first += kSmallThreads) {
    const uint64_t tile = first + threadIdx.x;
    uint32_t all;
    const uint32_t own = tile < p.tiles ? p.counts[tile] : 0;
    const uint32_t before_own = SumBefore<kSmallThreads>(own, warp_sums, &all);
    if (tile < p.tiles) p.counts[tile] = before + before_own;
    before += all;
    __syncthreads();  // the sums have been read
  }
  if (threadIdx.x == 0) *p.count_output = before;
}

template <typename Element>
__global__ void __launch_bounds__(kThreads) WriteTiles(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  DoTile<Element, kThreads, true>(p, uint64_t{blockIdx.x} * kThreads * kPerThread, p.counts[blockIdx.x]);
}

template <typename Element>
__global__ void __launch_bounds__(kSmallThreads) DoAll(const __grid_constant__ Parameters p) {
  uint32_t before = 0;
  for (uint64_t first = 0; first < p.elements; first += kSmallThreads * kPerThread) {
    before += DoTile<Element, kSmallThreads, true>(p, first, before);
  }
  if (threadIdx.x == 0) *p.count_output = before;
}

template <typename Element>
class NonzeroCuda final : public Kernel {
 public:
  explicit NonzeroCuda(const NonzeroProblem& problem) {
    LoopNest<1> nest;
    for (uint32_t d = 0; d < problem.input.rank; ++d) {
      nest.Append(problem.input.sizes[d], {problem.input.strides[d]});
    }
    const NonzeroColumns columns = ColumnsOf(problem);
    common_.mask = NonzeroMask(problem.input.type);
    common_.elements = static_cast<uint32_t>(Iterations(nest));
    constexpr uint32_t kTile = kThreads * kPerThread;
    common_.tiles = common_.elements / kTile + (common_.elements % kTile != 0 ? 1 : 0);
    common_.contiguous = nest.rank == 0 || (nest.rank == 1 && nest.loops[0].strides[0] == 1);
    common_.nest = DeviceNest<1>(nest);
    common_.columns = columns.count;
    for (uint32_t c = 0; c < columns.count; ++c) common_.sizes[c] = FastDivisor(columns.sizes[c]);
    common_.row_stride = columns.row_stride;
    common_.column_stride = columns.column_stride;
    if (common_.elements > kSmall)
      counts_ = layout_.Add("counts", uint64_t{common_.tiles} * sizeof(uint32_t));
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input = arguments.inputs[0].data;
    p.count_output = reinterpret_cast<uint32_t*>(arguments.outputs[0].data);
    p.coordinates = reinterpret_cast<uint32_t*>(arguments.outputs[1].data);
    KernelChain chain(arguments.stream);
    if (p.elements <= kSmall) {
      chain.Launch(DoAll<Element>, 1, kSmallThreads, p);
      return {};
    }
    p.counts = counts_.In<uint32_t>(arguments.temporary);
    chain.Launch(CountTiles<Element>, p.tiles, kThreads, p);
    chain.Launch(AddUpCounts, 1, kSmallThreads, p);
    chain.Launch(WriteTiles<Element>, p.tiles, kThreads, p);
    return {};
  }

 private:
  Parameters common_{};  // but for addresses
  ScratchLayout layout_;
  ScratchLayout::Piece counts_;
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
