// FLOAT32 convolutions of many channels: products of windows with filters, by tiles with a row per step.
// Images are read in place, with any strides; filters are first brought into the order of steps.
#include "kernel/kernel.h"
#include "ops/convolution/cuda/choose_tile.cuh"
#include "ops/convolution/cuda/operand_layout.cuh"
#include "ops/convolution/cuda/step_product_float.cuh"

namespace anydml {
namespace {

using step_windows::StepProduct;

constexpr uint32_t kTileRows = 96, kTileColumns = 128, kDown = 12, kAcross = 8, kTileSteps = 64, kStages = 2;
constexpr uint32_t kThreads = 2 * (kTileRows / kDown) * (kTileColumns / kAcross);
constexpr uint32_t kSharedBytes =
    step_windows::StepMemory<kTileRows, kTileColumns, kTileSteps, kStages>::kBytes;

template <bool kIsApart>
constexpr auto kKernel =
    step_windows::ConvolveSteps<kTileRows, kTileColumns, kDown, kAcross, kTileSteps, kStages, kIsApart>;

// Packs filters as [group][tap][channel][padded column]; missing columns are 0.
struct StepPacking {
  const float* from;
  float* to;
  ConvolutionTensor filter;
  uint32_t columns, padded_columns, steps;
  FastDivisor channels, taps[kMaxSpatial], all_taps;
  FastDivisor step_tiles, column_tiles;
  bool has_taps_first;  // taps are closer to each other than channels
};

constexpr uint32_t kPackTile = 32, kPackLines = 8;

// A block has a square of them.
__global__ void __launch_bounds__(kPackTile* kPackLines) PackSteps(const __grid_constant__ StepPacking p) {
  __shared__ float numbers[kPackTile][kPackTile + 1];
  WaitForPrevious();
  LetNextStart();
  const uint32_t lane = threadIdx.x % kPackTile, line = threadIdx.x / kPackTile;
  uint32_t step_tile, column_tile;
  const uint32_t group = p.column_tiles.Divide(p.step_tiles.Divide(blockIdx.x, &step_tile), &column_tile);
  // Steps in the order of the filter's memory.
  const auto find = [&](uint32_t number, uint32_t* tap) {
    if (p.has_taps_first) return p.all_taps.Divide(number, tap);
    uint32_t channel;
    *tap = p.channels.Divide(number, &channel);
    return channel;
  };
  const uint32_t number = step_tile * kPackTile + lane;
  if (number < p.steps) {
    uint32_t tap, at[kMaxSpatial];
    const uint32_t channel = find(number, &tap);
    uint64_t offset = p.filter.Matrix(0, group) + channel * p.filter.channel;
#pragma unroll
    for (int d = kMaxSpatial - 1; d >= 0; --d) {
      tap = p.taps[d].Divide(tap, &at[d]);
      offset += at[d] * p.filter.spatial[d];
    }
#pragma unroll
    for (uint32_t i = line; i < kPackTile; i += kPackLines) {
      const uint32_t column = column_tile * kPackTile + i;
      numbers[i][lane] = column < p.columns ? p.from[offset + column * p.filter.output_channel] : 0.0f;
    }
  }
  __syncthreads();
#pragma unroll
  for (uint32_t i = line; i < kPackTile; i += kPackLines) {
    const uint32_t step = step_tile * kPackTile + i;
    if (step >= p.steps) break;
    uint32_t tap;
    const uint32_t channel = find(step, &tap);
    const uint64_t row = uint64_t{group} * p.steps + tap * p.channels.divisor() + channel;
    p.to[row * p.padded_columns + column_tile * kPackTile + lane] = numbers[lane][i];
  }
}

class ConvolutionSteps final : public Kernel {
 public:
  ConvolutionSteps(const ConvolutionProblem& problem, const SumLimits& limits, const Cut& cut)
      : shape_(problem.shape),
        has_bias_(problem.bias.has_value()),
        filter_is_owned_(problem.filter_is_owned),
        padded_columns_(DivideUp(shape_.output_channels, kTileColumns) * kTileColumns),
        blocks_(cut.row_tiles * cut.column_tiles * shape_.outer[1] * cut.splits),
        splits_(cut.splits) {
    StepProduct& p = product_;
    SetWindows(shape_, shape_.input, &p);
    p.steps = static_cast<uint32_t>(shape_.Steps());
    p.padded_channels = FastDivisor(p.channels);
    p.steps_per_split = static_cast<uint32_t>(cut.per_split * kTileSteps);
    p.column_tiles = FastDivisor(static_cast<uint32_t>(cut.column_tiles));
    p.row_tiles = FastDivisor(static_cast<uint32_t>(cut.row_tiles));
    p.tiles_per_part = p.row_tiles;
    p.rows_per_part = static_cast<uint32_t>(shape_.outer[0] * shape_.Positions());
    p.cluster = FastDivisor(cut.splits);
    p.channel_stride = static_cast<uint32_t>(shape_.input.channel);
    p.filter_row = static_cast<uint32_t>(padded_columns_);
    p.filter_group = shape_.Steps() * padded_columns_;
    p.target = shape_.output;
    p.bias_stride = problem.bias.value_or(0);
    p.limits = limits;
    p.stores_by_channels = shape_.output.channel == 1;
    p.unit_bytes = StoreUnit(shape_, shape_.output, p.stores_by_channels, sizeof(float));
  }

  std::string made_of() const override {
    return StrCat("tiles of ", kTileRows, " x ", kTileColumns,
                  splits_ > 1 ? StrCat(" in ", splits_, " parts") : "");
  }

  uint64_t temporary_bytes() const override { return filter_is_owned_ ? 0 : FilterBytes(); }
  uint64_t persistent_bytes() const override { return filter_is_owned_ ? FilterBytes() : 0; }
  bool packs_input(uint32_t input) const override { return input == 1 && filter_is_owned_; }

  Status Initialize(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    Pack(&chain, arguments.inputs[1].data, arguments.persistent.data);
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream, /*all_wait=*/true);
    StepProduct p = product_;
    p.input = arguments.inputs[0].data + shape_.input.offset * sizeof(float);
    p.bias = has_bias_ ? arguments.inputs[2].data : nullptr;
    p.output = arguments.outputs[0].data;
    p.filter = filter_is_owned_ ? arguments.persistent.data : arguments.temporary.data;
    if (!filter_is_owned_) Pack(&chain, arguments.inputs[1].data, arguments.temporary.data);
    chain.Launch(shape_.input.channel == 1 ? kKernel<false> : kKernel<true>, blocks_, kThreads, p,
                 kSharedBytes, splits_);
    return {};
  }

 private:
  uint64_t FilterBytes() const { return shape_.outer[1] * shape_.Steps() * padded_columns_ * sizeof(float); }

  void Pack(KernelChain* chain, const std::byte* from, std::byte* to) const {
    StepPacking p = {};
    p.from = reinterpret_cast<const float*>(from);
    p.to = reinterpret_cast<float*>(to);
    p.filter = shape_.filter;
    p.channels = FastDivisor(static_cast<uint32_t>(shape_.input_channels));
    p.columns = static_cast<uint32_t>(shape_.output_channels);
    p.padded_columns = static_cast<uint32_t>(padded_columns_);
    p.steps = static_cast<uint32_t>(shape_.Steps());
    for (uint32_t d = 0; d < kMaxSpatial; ++d) p.taps[d] = FastDivisor(shape_.windows[d].taps);
    p.all_taps = FastDivisor(static_cast<uint32_t>(shape_.Taps()));
    p.step_tiles = FastDivisor(static_cast<uint32_t>(DivideUp(p.steps, kPackTile)));
    p.column_tiles = FastDivisor(p.padded_columns / kPackTile);
    p.has_taps_first = p.filter.channel != 1;
    const uint64_t blocks = uint64_t{p.step_tiles.divisor()} * p.column_tiles.divisor() * shape_.outer[1];
    chain->Launch(PackSteps, blocks, kPackTile * kPackLines, p);
  }

  const ConvolutionShape shape_;
  const bool has_bias_, filter_is_owned_;
  const uint64_t padded_columns_, blocks_;
  const uint32_t splits_;
  StepProduct product_{};  // without addresses
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionStepsCuda(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  const ConvolutionShape& s = problem.shape;
  SumLimits limits;
  *why_not = WhyNotChannelsLast(problem);
  if (!why_not->empty()) return nullptr;
  if (problem.type != DataType::kFloat32) {
    *why_not = "it is for FLOAT32";
  } else if (s.input_channels % kTileSteps != 0) {
    *why_not = StrCat("it is for multiples of ", kTileSteps, " channels; there are ", s.input_channels);
  } else if (problem.tail) {
    *why_not = "what comes after sums is done by cuda.channels_last";
  } else if (!limits.Set(problem.activation)) {
    *why_not = "there is an activation other than RELU and CLIP";
  } else if (!IsNear(s)) {
    *why_not = StrCat("it is for images in fewer than ", kMostElements, " elements");
  } else if (kSharedBytes + kStaticBytes > context.device->shared_bytes_per_block) {
    *why_not = "the device's blocks have too little shared memory";
  } else {
    CutProblem product = {};
    product.rows = s.outer[0] * s.Positions();
    product.columns = s.output_channels;
    product.groups = s.outer[1];
    product.parts = s.Steps() / kTileSteps;
    product.steps_per_part = kTileSteps;
    product.least_parts = 1;
    product.multiprocessors = context.device->multiprocessors;
    product.has_second_kernel = false;
    constexpr double kRate = 105;
    const Cut cut = CutFor(product, DivideUp(product.rows, kTileRows), kTileRows, kTileColumns, kThreads,
                           kRate, /*blocks=*/1);
    return std::make_unique<ConvolutionSteps>(problem, limits, cut);
  }
  return nullptr;
}

}  // namespace anydml
