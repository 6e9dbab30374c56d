#include "ops/convolution/cuda/few_channels_float.cuh"

#include <algorithm>

#include "kernel/device_traits.h"
#include "ops/convolution/cuda/operand_layout.cuh"

namespace anydml {
namespace {

using few_floats::kAcross;

constexpr uint32_t kFewY = kMaxSpatial - 2, kFewX = kMaxSpatial - 1;
constexpr uint64_t kMostFewChannels = 4;

// The shape of windows along rows is the kernel's template parameter.
struct FewTile {
  uint32_t taps, stride;
  uint32_t down, columns, threads, width;
  void (*kernel)(few_floats::Product);

  uint64_t SharedBytes(uint64_t channels, uint64_t lines, uint64_t steps) const {
    return (channels * lines * width + few_floats::PaddedSteps(steps) * (columns + 4)) * sizeof(float);
  }
};

template <uint32_t kTaps, uint32_t kStride, uint32_t kPixels, uint32_t kDown, uint32_t kColumns>
constexpr FewTile TileOfFew() {
  return {kTaps,
          kStride,
          kDown,
          kColumns,
          kAcross / kPixels * kDown * (kColumns / 4),
          few_floats::PatchWidth<kTaps, kStride>(),
          few_floats::ConvolveFew<kTaps, kStride, kPixels, kDown, kColumns>};
}

constexpr FewTile kFewTiles[] = {TileOfFew<7, 2, 4, 4, 32>(), TileOfFew<5, 2, 4, 4, 32>(),
                                 TileOfFew<5, 1, 4, 4, 32>(), TileOfFew<3, 2, 4, 4, 32>(),
                                 TileOfFew<3, 1, 4, 4, 32>()};

// Whether an output channel's taps are contiguous, in any order.
bool HasPackedFilters(const ConvolutionShape& s) {
  std::pair<uint64_t, uint64_t> by_stride[] = {{s.filter.channel, s.input_channels},
                                               {s.filter.spatial[kFewY], s.windows[kFewY].taps},
                                               {s.filter.spatial[kFewX], s.windows[kFewX].taps}};
  std::sort(std::begin(by_stride), std::end(by_stride));
  uint64_t next = 1;
  for (const auto& [stride, size] : by_stride) {
    if (size == 1) continue;
    if (stride != next) return false;
    next *= size;
  }
  return true;
}

std::string WhyNotFew(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  const ConvolutionWindow &x = s.windows[kFewX], &y = s.windows[kFewY], &z = s.windows[0];
  if (problem.type != DataType::kFloat32 || s.backward || s.outer[1] != 1 || z.taps != 1 || z.input != 1 ||
      z.output != 1 || z.start_padding != 0) {
    return "it is for FLOAT32 images of one group, forward";
  }
  if (s.input_channels > kMostFewChannels) {
    return StrCat("it is for up to ", kMostFewChannels, " channels; there are ", s.input_channels);
  }
  constexpr uint32_t kFar = 1 << 16;
  const auto is_near = [](const ConvolutionWindow& w) {
    return w.reached == w.output &&
           std::max({w.input, w.output, w.start_padding, w.stride, w.dilation, w.taps}) < kFar &&
           uint64_t{w.output} * w.stride + uint64_t{w.taps} * w.dilation < uint64_t{kFar} * kFar / 2;
  };
  if (!is_near(x) || !is_near(y)) return StrCat("it is for sizes below ", kFar);
  if (x.dilation != 1 && x.taps != 1) return "taps in a row are apart";
  if (!HasPackedFilters(s)) return "the taps of a filter do not follow each other in memory";
  if (problem.tail) return "what comes after sums is done by cuda.channels_last alone";
  SumLimits limits;
  if (!limits.Set(problem.activation)) return "there is an activation other than RELU and CLIP";
  return "";
}

class ConvolutionFewFloats final : public Kernel {
 public:
  ConvolutionFewFloats(const ConvolutionProblem& problem, const FewTile& tile)
      : tile_(tile), has_bias_(problem.bias.has_value()), filter_offset_(problem.shape.filter.offset) {
    const ConvolutionShape& s = problem.shape;
    few_floats::Product& p = product_;
    p.in = s.input;
    p.out = s.output;
    p.x = s.windows[kFewX];
    p.y = s.windows[kFewY];
    p.channels = static_cast<uint32_t>(s.input_channels);
    p.columns = static_cast<uint32_t>(s.output_channels);
    p.steps = static_cast<uint32_t>(s.Steps());
    p.step_channel = static_cast<uint32_t>(s.filter.channel);
    p.step_y = static_cast<uint32_t>(s.filter.spatial[kFewY]);
    p.step_x = static_cast<uint32_t>(s.filter.spatial[kFewX]);
    p.filter_row = s.filter.output_channel;
    p.bias_stride = problem.bias.value_or(0);
    p.limits.Set(problem.activation);
    p.lines = FastDivisor(static_cast<uint32_t>(Lines(s, tile)));
    p.tiles_x = FastDivisor(static_cast<uint32_t>(DivideUp(p.x.output, kAcross)));
    p.tiles_y = FastDivisor(static_cast<uint32_t>(DivideUp(p.y.output, tile.down)));
    p.column_tiles = FastDivisor(static_cast<uint32_t>(DivideUp(p.columns, tile.columns)));
    constexpr uint32_t kUnitBytes = 16;
    p.by_channels = s.output.channel == 1 && StoreUnit(s, s.output, true, sizeof(float)) == kUnitBytes;
    p.by_rows = p.x.output % 4 == 0 && StoreUnit(s, s.output, false, sizeof(float)) == kUnitBytes;
    blocks_ = Blocks(s, tile);
    shared_bytes_ = static_cast<uint32_t>(tile.SharedBytes(p.channels, p.lines.divisor(), p.steps));
  }

  static uint64_t Lines(const ConvolutionShape& s, const FewTile& tile) {
    const ConvolutionWindow& y = s.windows[kFewY];
    return uint64_t{tile.down - 1} * y.stride + uint64_t{y.taps - 1} * y.dilation + 1;
  }
  static uint64_t Blocks(const ConvolutionShape& s, const FewTile& tile) {
    return s.outer[0] * DivideUp(s.windows[kFewX].output, kAcross) *
           DivideUp(s.windows[kFewY].output, tile.down) * DivideUp(s.output_channels, tile.columns);
  }

  Status Run(const KernelArguments& arguments) const override {
    few_floats::Product p = product_;
    p.input = reinterpret_cast<const float*>(arguments.inputs[0].data);
    p.filter = reinterpret_cast<const float*>(arguments.inputs[1].data) + filter_offset_;
    p.bias = has_bias_ ? reinterpret_cast<const float*>(arguments.inputs[2].data) : nullptr;
    p.output = reinterpret_cast<float*>(arguments.outputs[0].data);
    KernelChain(arguments.stream, /*all_wait=*/true)
        .Launch(tile_.kernel, blocks_, tile_.threads, p, shared_bytes_);
    return {};
  }

 private:
  const FewTile tile_;
  few_floats::Product product_{};  // without addresses
  const bool has_bias_;
  const uint64_t filter_offset_;
  uint64_t blocks_ = 0;
  uint32_t shared_bytes_ = 0;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionFewFloatsCuda(const ConvolutionProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not) {
  *why_not = WhyNotFew(problem);
  if (!why_not->empty()) return nullptr;
  const ConvolutionShape& s = problem.shape;
  const ConvolutionWindow& x = s.windows[kFewX];
  for (const FewTile& tile : kFewTiles) {
    if (tile.taps != x.taps || tile.stride != x.stride) continue;
    constexpr uint64_t kMostBlocks = uint64_t{1} << 31;
    const uint64_t lines = ConvolutionFewFloats::Lines(s, tile);
    const uint64_t bytes = tile.SharedBytes(s.input_channels, lines, s.Steps());
    if (bytes <= context.device->shared_bytes_per_block &&
        ConvolutionFewFloats::Blocks(s, tile) < kMostBlocks) {
      return std::make_unique<ConvolutionFewFloats>(problem, tile);
    }
    *why_not = StrCat("a block would need ", bytes, " bytes of shared memory, or there are too many blocks");
    return nullptr;
  }
  *why_not = StrCat("there is no kernel for ", x.taps, " taps in a row with a stride of ", x.stride);
  return nullptr;
}

}  // namespace anydml
