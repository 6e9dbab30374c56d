// Tiled sums of integers, as for floating point; integers can be added in any order.
#include <cuda_runtime.h>

#include <algorithm>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/window_operands.cuh"
#include "ops/integer_product/problem.h"

namespace anydml {
namespace {

struct Operand {
  const void* data;
  const void* zeros;  // null: none
  uint64_t zero_stride, zero_group;
  DataType type;
};

struct Parameters {
  DeviceShape shape;
  Operand input, filter;
  void* output;
};

// Sign-extended for signed types; sums wrap.
template <typename V>
__device__ V IntegerAt(const void* data, DataType type, uint64_t at) {
  switch (type) {
    case DataType::kInt8:
      return static_cast<V>(static_cast<int64_t>(static_cast<const int8_t*>(data)[at]));
    case DataType::kUInt8:
      return static_cast<const uint8_t*>(data)[at];
    case DataType::kInt16:
      return static_cast<V>(static_cast<int64_t>(static_cast<const int16_t*>(data)[at]));
    case DataType::kUInt16:
      return static_cast<const uint16_t*>(data)[at];
    case DataType::kInt32:
      return static_cast<V>(static_cast<int64_t>(static_cast<const int32_t*>(data)[at]));
    default:
      return static_cast<const uint32_t*>(data)[at];
  }
}

template <typename V>
__device__ V ZeroOf(const Operand& operand, uint32_t group, uint32_t number) {
  if (operand.zeros == nullptr) return 0;
  return IntegerAt<V>(operand.zeros, operand.type, group * operand.zero_group + number * operand.zero_stride);
}

template <typename V, uint32_t kTile>
__global__ void __launch_bounds__(kTileThreads) AddUp(const __grid_constant__ Parameters p) {
  const DeviceShape& s = p.shape;
  for (uint64_t number = blockIdx.x; number < s.plan.tiles; number += gridDim.x) {
    const TilePlace place(number, kTile, s.output_channels, s.positions, s.matrices);
    const uint32_t group = place.matrix % s.inner;
    const uint64_t filter = MatrixOf(s, s.filter, place.matrix);
    const uint32_t position = place.column + threadIdx.x % kTile;
    const DeviceWindow window(s, place.matrix, position);
    const V input_zero = ZeroOf<V>(p.input, group, window.inside ? position : 0);
    RunTileProduct<V, kTile>(
        0, s.steps, /*a_along_k=*/true, /*b_along_k=*/false,
        [&](uint32_t element, uint32_t step) {
          const uint32_t channel = place.row + element;
          if (channel >= s.output_channels) return V{0};
          return IntegerAt<V>(p.filter.data, p.filter.type, FilterOffset(s, filter, channel, step)) -
                 ZeroOf<V>(p.filter, group, channel);
        },
        [&](uint32_t, uint32_t step) {
          uint64_t at;
          return window.Find(step, &at) ? IntegerAt<V>(p.input.data, p.input.type, at) - input_zero : V{0};
        },
        [&](uint32_t channel, uint32_t column, V sum) {
          channel += place.row;
          column += place.column;
          if (channel >= s.output_channels || column >= s.positions) return;
          static_cast<V*>(p.output)[OutputOffset(s, place.matrix, channel, column)] = sum;
        });
  }
}

class IntegerTiled final : public Kernel {
 public:
  IntegerTiled(const IntegerSums& problem, const LowerContext& context) : problem_(problem) {
    Parameters& p = common_;
    p.shape = DeviceShape(problem.shape, context.device->multiprocessors);
    // Parts would need an addition pass; many small tiles do not.
    ProductTiles& plan = p.shape.plan;
    plan.tiles /= plan.splits;
    plan.splits = 1;
    if (problem.sum_type == DataType::kInt64) {
      // Larger tiles of 64-bit numbers do not fit into shared memory.
      plan.tile = 32;
      const auto tiles = [](uint64_t size) { return (size + 31) / 32; };
      plan.tiles = p.shape.matrices * tiles(p.shape.output_channels) * tiles(p.shape.positions);
    }
    blocks_ = std::min<uint64_t>(plan.tiles, uint64_t{1} << 30);
    SetZeros(problem.input_zero, problem.input_type, &p.input);
    SetZeros(problem.filter_zero, problem.filter_type, &p.filter);
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input.data = arguments.inputs[problem_.input].data;
    p.filter.data = arguments.inputs[problem_.filter].data;
    if (problem_.input_zero) p.input.zeros = arguments.inputs[problem_.input_zero->input].data;
    if (problem_.filter_zero) p.filter.zeros = arguments.inputs[problem_.filter_zero->input].data;
    p.output = arguments.outputs[0].data;
    KernelChain(arguments.stream).Launch(Find(), blocks_, kTileThreads, p);
    return {};
  }

 private:
  static void SetZeros(const std::optional<ZeroPoints>& zeros, DataType type, Operand* operand) {
    operand->type = type;
    if (!zeros) return;
    operand->zero_stride = zeros->stride;
    operand->zero_group = zeros->group;
  }

  void (*Find() const)(Parameters) {
    if (problem_.sum_type == DataType::kInt64) return AddUp<uint64_t, 32>;
    const uint32_t tile = common_.shape.plan.tile;
    return tile == 128 ? AddUp<uint32_t, 128> : tile == 64 ? AddUp<uint32_t, 64> : AddUp<uint32_t, 32>;
  }

  IntegerSums problem_;
  Parameters common_{};  // without addresses
  uint64_t blocks_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerSumsCuda(const IntegerProductProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  if (!problem.program.program.instructions.empty()) {
    *why_not = "there are scales";
    return nullptr;
  }
  return std::make_unique<IntegerTiled>(problem.sums, context);
}

}  // namespace anydml
