// FLOAT16 convolutions of one tap with few channels, as in inverted residuals: see pointwise_half.cuh.
#include "ops/convolution/cuda/pointwise_half.cuh"

#include <algorithm>
#include <array>

#include "kernel/composite.h"
#include "kernel/device_traits.h"
#include "ops/convolution/cuda/operand_layout.cuh"
#include "ops/convolution/cuda/product_cut.h"
#include "ops/convolution/one_tap.h"

namespace anydml {
namespace {

constexpr uint32_t kMostGroups = 6;              // of input channels, which are in registers
constexpr uint64_t kMostFilterBytes = 64 << 10;  // in shared memory

using PointKernel = void (*)(PointProduct);

// The layout of a tensor: either channels or positions are contiguous.
struct PointTensor {
  bool planes = false;
  uint64_t stride = 0;  // between the others

  // `unit`: numbers of planes that are read or written together.
  bool Set(const ConvolutionShape& s, const ConvolutionTensor& tensor, uint64_t channels, uint64_t unit) {
    uint64_t position;
    if (s.Positions() == 1 || !PositionStride(s, tensor, &position)) return false;
    const uint64_t image = s.outer[0] > 1 ? tensor.outer[0] : 0;
    planes = tensor.channel != 1;
    stride = planes ? tensor.channel : position;
    if (planes && (position != 1 || s.Positions() % unit != 0)) return false;
    if (!planes) unit = kHalfUnit;
    const uint64_t last = (planes ? channels : s.Positions()) * stride;
    return (tensor.offset | image | stride) % unit == 0 && last < uint64_t{1} << 31;
  }
};

// A warp's positions, and the kernel.
struct PointTile {
  uint32_t positions, columns;  // or rows: output channels at a time
  PointKernel kernel;
};

// `run`: numbers of planes that are stored together.
template <uint32_t kGroups>
PointTile TileOf(bool from_planes, bool to_planes, uint32_t run) {
  if (to_planes && from_planes) return {16, kPointRows, PointsToPlanes<true, kGroups, 2>};
  if (to_planes && run == 8) return {32, kPointRows, PointsToPlanes<false, kGroups, 4>};
  if (to_planes) return {16, kPointRows, PointsToPlanes<false, kGroups, 2>};
  return {kPointPositions, kPointColumns,
          from_planes ? PointsToChannels<true, kGroups> : PointsToChannels<false, kGroups>};
}
constexpr std::array kPointTiles = {TileOf<1>, TileOf<2>, TileOf<3>, TileOf<4>, TileOf<5>, TileOf<6>};
static_assert(kPointTiles.size() == kMostGroups);

class ConvolutionPointwise final : public CompositeKernel {
 public:
  explicit ConvolutionPointwise(const ConvolutionProblem& problem) : tail_(problem.tail) {
    has_bias_ = problem.bias.has_value();
    common_.bias_stride = problem.bias.value_or(0);
  }

  // Why it is impossible; empty if it is possible.
  std::string Set(const ConvolutionProblem& problem) {
    const ConvolutionShape& s = problem.shape;
    if (problem.type != DataType::kFloat16 || s.backward || s.outer[1] != 1) {
      return "it is for FLOAT16 of one group, forward";
    }
    std::string why_not = WhyNotOneTap(s);
    if (!why_not.empty()) return why_not;
    if (!common_.limits.Set(problem.activation)) return "it is for no activation but RELU and CLIP";
    if (problem.tail) {
      if (problem.tail->normalization) return "it adds and does not normalise";
      why_not = WhyNotTail(problem);
      if (!why_not.empty()) return why_not;
    }
    const uint64_t k = s.input_channels, n = s.output_channels;
    if (k % kHalfUnit != 0 || n % kHalfUnit != 0 || k > kMostGroups * kPointSteps || n >= 1 << 16) {
      return StrCat("it is for multiples of ", kHalfUnit, " channels, up to ", kMostGroups * kPointSteps,
                    " of the input; there are ", k, " and ", n);
    }
    const ConvolutionTensor& f = s.filter;
    if (f.channel != 1 || (f.offset | f.output_channel) % kHalfUnit != 0 || f.output_channel >= 1 << 14) {
      return "channels of filters are not neighbours, in whole units";
    }
    // To planes a thread writes eight or four positions; from planes it reads two, or as many as it writes.
    const bool writes = output_.Set(s, s.output, n, run_) || output_.Set(s, s.output, n, run_ = 4);
    if (!writes || !input_.Set(s, s.input, k, output_.planes ? 4 : 2) ||
        s.outer[0] * s.Positions() >= uint64_t{1} << 31) {
      return "neither channels nor positions are neighbours, in whole units";
    }
    return "";
  }

  void Choose(const ConvolutionShape& s, uint64_t multiprocessors) {
    constexpr uint32_t kEnoughWarps = 16;  // per multiprocessor
    const auto groups = static_cast<uint32_t>(DivideUp(s.input_channels, kPointSteps));
    if (s.outer[0] * s.Positions() < multiprocessors * kEnoughWarps * 32) run_ = 4;
    const PointTile tile = kPointTiles[groups - 1](input_.planes, output_.planes, run_);
    kernel_ = tile.kernel;
    uint64_t images = s.outer[0], positions = s.Positions();
    // Images whose positions are consecutive are treated as one.
    const auto continues = [&](const PointTensor& tensor, const ConvolutionTensor& of) {
      return !tensor.planes && of.outer[0] == positions * tensor.stride &&
             images * of.outer[0] < uint64_t{1} << 31;
    };
    if (images > 1 && continues(input_, s.input) && continues(output_, s.output)) {
      positions *= images;
      images = 1;
    }
    PointProduct& p = common_;
    p.inputs = static_cast<uint32_t>(s.input_channels);
    p.outputs = static_cast<uint32_t>(s.output_channels);
    p.positions = static_cast<uint32_t>(positions);
    p.tiles_per_image = FastDivisor(static_cast<uint32_t>(DivideUp(positions, tile.positions)));
    p.tiles = static_cast<uint32_t>(images * p.tiles_per_image.divisor());
    p.input_stride = static_cast<uint32_t>(input_.stride);
    p.output_stride = static_cast<uint32_t>(output_.stride);
    p.filter_row = static_cast<uint32_t>(s.filter.output_channel);
    p.input_image = s.input.outer[0];
    p.output_image = s.output.outer[0];
    input_offset_ = s.input.offset;
    filter_offset_ = s.filter.offset;
    output_offset_ = s.output.offset;

    // With few positions, blocks share them and have parts of the output's channels.
    constexpr uint32_t kFewWarps = 4, kBlocks = 5;  // per multiprocessor
    const uint64_t columns = DivideUp(s.output_channels, tile.columns);
    const uint64_t bytes = uint64_t{groups} * kPointSteps * tile.columns * sizeof(__half);
    const bool many = p.tiles >= multiprocessors * kEnoughWarps;
    uint64_t parts = DivideUp(columns * bytes, kMostFilterBytes);
    if (!many) {
      const uint64_t most = DivideUp(columns * tile.columns, kPointColumns);
      parts = std::max(parts, std::min(most, DivideUp(multiprocessors * kFewWarps, p.tiles)));
    }
    p.part_groups = static_cast<uint32_t>(DivideUp(columns, std::min(parts, columns)));
    p.parts = FastDivisor(static_cast<uint32_t>(DivideUp(columns, p.part_groups)));
    const uint64_t stores = DivideUp(p.part_groups, kMostStoredGroups);
    p.stored_groups = static_cast<uint32_t>(DivideUp(p.part_groups, stores));

    // Each thread loads some of the filters.
    constexpr uint64_t kThreadBytes = 4 * sizeof(uint4);
    threads_ = kPointThreads;
    while (!many && threads_ > 32 && p.part_groups * bytes <= threads_ / 2 * kThreadBytes) threads_ /= 2;
    const uint64_t warps = threads_ / 32, turns = DivideUp(p.tiles, multiprocessors * kBlocks * warps);
    blocks_ = DivideUp(p.tiles, warps * (many ? turns : 1)) * p.parts.divisor();
    const uint64_t results = output_.planes ? 0 : warps * kPointPositions * PointPitch(p.stored_groups);
    shared_bytes_ = static_cast<uint32_t>(p.part_groups * (bytes + tile.columns * sizeof(float)) + results);
  }

  Status Run(const KernelArguments& arguments) const override {
    const auto at = [](const Buffer& buffer, uint64_t offset) {
      return reinterpret_cast<__half*>(buffer.data) + offset;
    };
    PointProduct p = common_;
    p.input = at(arguments.inputs[0], input_offset_);
    p.filter = at(arguments.inputs[1], filter_offset_);
    if (has_bias_) p.bias = at(arguments.inputs[2], 0);
    p.output = at(arguments.outputs[0], output_offset_);
    if (tail_) {
      p.tail = TailOf(*tail_, arguments);
      if (p.tail.added != nullptr) p.tail.added = static_cast<const __half*>(p.tail.added) + output_offset_;
    }
    KernelChain(arguments.stream, /*all_wait=*/true).Launch(kernel_, blocks_, threads_, p, shared_bytes_);
    return {};
  }

 private:
  std::optional<ConvolutionTail> tail_;
  bool has_bias_;
  PointTensor input_, output_;
  uint32_t run_ = 8;       // numbers of planes that are stored together
  PointProduct common_{};  // without addresses
  PointKernel kernel_ = nullptr;
  uint64_t input_offset_ = 0, filter_offset_ = 0, output_offset_ = 0;
  uint64_t blocks_ = 0;
  uint32_t threads_ = 0, shared_bytes_ = 0;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionPointwiseCuda(const ConvolutionProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not) {
  auto kernel = std::make_unique<ConvolutionPointwise>(problem);
  *why_not = kernel->Set(problem);
  if (!why_not->empty()) return nullptr;
  kernel->Choose(problem.shape, context.device->multiprocessors);
  return kernel;
}

}  // namespace anydml
