// Elements that are only moved: in the largest units that layouts and addresses allow, or, where input and
// output have their neighbours in different loops, through tiles in the block's memory.
#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_copy.cuh"
#include "ops/common/dispatch.h"
#include "ops/element/problem.h"

namespace anydml {
namespace {

enum Operand { kFrom = DeviceCopy::kFrom, kTo = DeviceCopy::kTo };
constexpr uint32_t kThreads = 256;

__global__ void __launch_bounds__(kThreads) CopyKernel(const __grid_constant__ DeviceCopy copy) {
  CopyBlock(copy, blockIdx.x);
}

// 64 elements are a line of 64 to 256 bytes on both sides; with 8 bytes, 32 are enough.
template <typename T>
constexpr uint32_t kTile = sizeof(T) == 8 ? 32 : 64;

struct TransposedCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  // Neighbours of the input are in rows' direction, those of the output in columns'.
  LoopNest<2>::Loop rows;
  LoopNest<2>::Loop columns;
  FastDivisor row_tiles;
  FastDivisor column_tiles;
  DeviceNest<2> outer;
};

// A row of threads reads along the input's neighbours and writes along the output's.
template <typename T>
__global__ void __launch_bounds__(kThreads) TransposeKernel(const __grid_constant__ TransposedCopy copy) {
  constexpr uint32_t kEdge = kTile<T>;
  constexpr uint32_t kLines = kThreads / kEdge;  // at a time
  // Lines of an odd number of words: what is beside each other in a column is in different banks.
  __shared__ T tile[kEdge][kEdge + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
  const uint32_t lane = threadIdx.x % kEdge, line = threadIdx.x / kEdge;
  uint32_t row_tile, column_tile;
  const uint32_t outer = copy.row_tiles.Divide(copy.column_tiles.Divide(blockIdx.x, &column_tile), &row_tile);
  uint64_t offsets[2];
  copy.outer.OffsetsOf(outer, offsets);
  const uint64_t row = uint64_t{row_tile} * kEdge, column = uint64_t{column_tile} * kEdge;
  const T* const from = reinterpret_cast<const T*>(copy.from) + offsets[kFrom];
  T elements[kEdge / kLines];
#pragma unroll
  for (uint32_t i = 0; i < kEdge / kLines; ++i) {
    const uint64_t r = row + lane, c = column + line + i * kLines;
    const bool inside = r < copy.rows.size && c < copy.columns.size;
    elements[i] = inside ? from[r * copy.rows.strides[kFrom] + c * copy.columns.strides[kFrom]] : T{0};
  }
#pragma unroll
  for (uint32_t i = 0; i < kEdge / kLines; ++i) tile[lane][line + i * kLines] = elements[i];
  __syncthreads();
  T* const to = reinterpret_cast<T*>(copy.to) + offsets[kTo];
#pragma unroll
  for (uint32_t i = 0; i < kEdge / kLines; ++i) {
    const uint64_t r = row + line + i * kLines, c = column + lane;
    if (r < copy.rows.size && c < copy.columns.size) {
      to[r * copy.rows.strides[kTo] + c * copy.columns.strides[kTo]] = tile[line + i * kLines][lane];
    }
  }
}

class ElementCopyCuda final : public Kernel {
 public:
  explicit ElementCopyCuda(const ElementProblem& problem)
      : type_(problem.outputs[0].type), nest_(NestOf(problem)), same_layout_(SameStrides(nest_)) {
    DispatchByWidth(type_, [&]<typename T>() { FindTiles(kTile<T>); });
  }

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* const from = arguments.inputs[0].data;
    std::byte* const to = arguments.outputs[0].data;
    if (same_layout_ && from == to) return {};
    KernelChain chain(arguments.stream);
    if (tiles_ == 0) {
      const DeviceCopy copy = MakeDeviceCopy(nest_, BitSize(type_) / 8, from, to);
      chain.Launch(CopyKernel, CopyBlocks(copy, kThreads), kThreads, copy);
      return {};
    }
    TransposedCopy copy = transposed_;
    copy.from = from;
    copy.to = to;
    DispatchByWidth(type_, [&]<typename T>() { chain.Launch(TransposeKernel<T>, tiles_, kThreads, copy); });
    return {};
  }

 private:
  static LoopNest<2> NestOf(const ElementProblem& problem) {
    LoopNest<2> nest;
    for (uint32_t d = 0; d < problem.rank; ++d) {
      nest.Append(problem.sizes[d], {problem.inputs[0].strides[d], problem.outputs[0].strides[d]});
    }
    return SortedByStride(nest, kTo);
  }

  static bool SameStrides(const LoopNest<2>& nest) {
    return std::all_of(nest.loops.begin(), nest.loops.begin() + nest.rank,
                       [](const auto& loop) { return loop.strides[kFrom] == loop.strides[kTo]; });
  }

  void FindTiles(uint32_t edge) {
    LoopNest<2> outer = nest_;
    const auto columns = TakeInnermost(&outer);
    uint32_t across = outer.rank;
    for (uint32_t d = 0; d < outer.rank; ++d) {
      const uint64_t stride = outer.loops[d].strides[kFrom];
      if (stride == 0 || stride >= columns.strides[kFrom]) continue;
      if (across == outer.rank || stride < outer.loops[across].strides[kFrom]) across = d;
    }
    // Tiles that are mostly empty would cost more than they save.
    const uint64_t least = edge / 4;
    if (across == outer.rank || columns.size < least || outer.loops[across].size < least) return;
    transposed_.rows = outer.loops[across];
    transposed_.columns = columns;
    std::copy(outer.loops.begin() + across + 1, outer.loops.begin() + outer.rank,
              outer.loops.begin() + across);
    --outer.rank;
    const uint64_t row_tiles = (transposed_.rows.size + edge - 1) / edge;
    const uint64_t column_tiles = (columns.size + edge - 1) / edge;
    transposed_.row_tiles = FastDivisor(static_cast<uint32_t>(row_tiles));
    transposed_.column_tiles = FastDivisor(static_cast<uint32_t>(column_tiles));
    transposed_.outer = DeviceNest<2>(outer);
    tiles_ = row_tiles * column_tiles * Iterations(outer);
  }

  DataType type_;
  LoopNest<2> nest_;
  bool same_layout_;    // nothing to do in place
  uint64_t tiles_ = 0;  // 0: without
  TransposedCopy transposed_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementCopyCuda(const ElementProblem& problem, const LowerContext&,
                                                    std::string* why_not) {
  if (!IsMove(problem)) {
    *why_not = "elements are not only moved";
    return nullptr;
  }
  if (BitSize(problem.outputs[0].type) < 8 || problem.rank > kMaxDimensions) {
    *why_not = "only elements of whole bytes, in up to 8 loops, are moved here";
    return nullptr;
  }
  return std::make_unique<ElementCopyCuda>(problem);
}

}  // namespace anydml
