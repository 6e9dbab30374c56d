#include <algorithm>

#include "ops/convolution/problem.h"

namespace anydml {
namespace {

// Of inputs and filters up to 1: see GEMM's.
Exactness Bound(const ConvolutionProblem& problem) {
  Exactness exactness;
  const auto k = static_cast<double>(problem.shape.Steps());
  exactness.absolute = 0x1p-24 * (k * k + 2);
  exactness.float32_ulps = 8 + problem.activation.ulps();
  exactness.float16_ulps = 1;
  return exactness;
}

bool IsSmall(const ConvolutionProblem& problem) {
  return problem.shape.Elements() * problem.shape.Steps() < uint64_t{1} << 22;
}

std::string BetterWithoutGemm(const ConvolutionProblem& problem, const LowerContext&) {
  return IsSmall(problem) ? "a small convolution" : "";
}

// Where multiplying takes longer than the memory, and where few positions leave threads with many channels.
std::string BetterAsProduct(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFewChannels = 64, kMostChannels = 384, kFewPositions = 1 << 14, kFewProducts = 1 << 13;
  const ConvolutionShape& s = problem.shape;
  const uint64_t inputs = s.input_channels, outputs = s.output_channels;
  if (std::min(inputs, outputs) > kFewChannels || outputs > kMostChannels) return "many channels";
  const bool few = s.outer[0] * s.Positions() < kFewPositions;
  return few && inputs * outputs > kFewProducts ? "many channels for few positions" : "";
}

// Then bringing operands into another order costs more than it saves.
std::string BetterByTiles(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFewSteps = 64;
  return IsSmall(problem) && problem.shape.Steps() < kFewSteps ? "a small convolution of few steps" : "";
}

// Its tiles are large, and a multiprocessor has one at a time: they should fill the device, and be filled. Of
// neighbouring channels it reads single numbers: then two smaller tiles are better than two in turn.
std::string BetterWithoutSteps(const ConvolutionProblem& problem, const LowerContext& context) {
  constexpr uint64_t kTileRows = 96, kTileColumns = 128;
  constexpr double kLeast = 0.75;  // of all that blocks could do at a time
  const ConvolutionShape& s = problem.shape;
  const uint64_t rows = s.outer[0] * s.Positions(), multiprocessors = context.device->multiprocessors;
  const uint64_t tiles =
      ((rows - 1) / kTileRows + 1) * ((s.output_channels - 1) / kTileColumns + 1) * s.outer[1];
  const uint64_t turns = (tiles - 1) / multiprocessors + 1;
  if (s.input.channel == 1 && turns > 1) return "neighbouring channels, many tiles";
  const auto done = static_cast<double>(rows * s.output_channels * s.outer[1]);
  return done < kLeast * static_cast<double>(turns * multiprocessors * kTileRows * kTileColumns) ? "few tiles"
                                                                                                 : "";
}

bool IsInPlanes(const ConvolutionShape& s) {
  return s.input.spatial[kMaxSpatial - 1] == 1 && s.output.spatial[kMaxSpatial - 1] == 1;
}

// It is there for single images; batches of them in planes are left to cuDNN.
std::string BetterWithoutFewFloats(const ConvolutionProblem& problem, const LowerContext& context) {
  constexpr uint64_t kManyProducts = uint64_t{1} << 29;
  const ConvolutionShape& s = problem.shape;
  if (IsInPlanes(s) && s.Elements() * s.Steps() >= kManyProducts) return "many images in planes";
  return BetterByTiles(problem, context);
}

// Where cuDNN is not slower, with what changes the order of channels around it, on an H200: with many
// channels that is little beside the products, long rows are cut into strips that overlap, and a kernel that
// packs filters in each run takes as long as what is saved: few of them, in order, are packed by blocks.
std::string BetterWithoutPlanes(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kManyProducts = uint64_t{1} << 26, kFewChannels = 48, kStep = 64;
  constexpr uint32_t kShortRow = 32, kStrip = 64, kLongRow = 112;
  const ConvolutionShape& s = problem.shape;
  const uint64_t most = std::max(s.input_channels, s.output_channels);
  const uint32_t width = s.windows[kMaxSpatial - 1].output;
  if (s.Elements() * s.Steps() < kManyProducts) return "a small convolution";
  if (!problem.filter_is_owned && (most > kStep || !s.HasPackedFilters())) {
    return "filters that are not OWNED_BY_DML";
  }
  if (problem.tail && problem.tail->addition) return "an addition behind it";
  if (std::min(s.input_channels, s.output_channels) < kFewChannels) return "few channels";
  if (most > 2 * kStep || (most > kStep && width > kStrip)) return "many channels";
  return width < kShortRow ? "short rows" : width > kLongRow ? "long rows" : "";
}

// Where cuDNN's kernels are not faster than ours, on an H200. Products are those of single numbers.
std::string BetterWithoutCudnn(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kManyProducts = uint64_t{1} << 26, kFewChannels = 4;
  const ConvolutionShape& s = problem.shape;
  if (s.Elements() * s.Steps() < kManyProducts) return "a small convolution";
  if (s.input_channels == 1) return "filters of one channel";
  if (problem.type == DataType::kFloat16) return "";
  // Without tensor cores: what has few channels, in planes, which ours would have to bring together.
  return IsInPlanes(s) && s.input_channels <= kFewChannels && !s.backward
             ? ""
             : "FLOAT32, not of few channels in planes";
}

// Vectors of channels would have few numbers.
std::string BetterByPlanes(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFewChannels = 8;
  return problem.shape.outer[1] < kFewChannels ? "few channels" : "";
}

constexpr Implementation<ConvolutionProblem> kImplementations[] = {
    {"cpu.depthwise_channels_last",
     "cpu",
     ANYDML_ON_CPU(CreateConvolutionDepthwiseChannelsLast),
     BetterByPlanes,
     {},
     Bound},
    {"cpu.depthwise_planes", "cpu", ANYDML_ON_CPU(CreateConvolutionDepthwisePlanes), nullptr, {}, Bound},
    {"cpu.depthwise", "cpu", ANYDML_ON_CPU(CreateConvolutionDepthwise), nullptr, {}, Bound},
    {"cpu.phases", "cpu", ANYDML_ON_CPU(CreateConvolutionPhases), nullptr, {}, Bound},
    {"cpu.plane_tiles",
     "cpu",
     ANYDML_ON_CPU(CreateConvolutionPlaneTiles),
     ANYDML_ON_CPU(BetterWithoutPlaneTiles),
     {},
     Bound},
    {"cpu.channels_last",
     "cpu",
     ANYDML_ON_CPU(CreateConvolutionChannelsLast),
     ANYDML_ON_CPU(BetterWithoutChannelsLast),
     {},
     Bound},
    {"cpu.product", "cpu", ANYDML_ON_CPU(CreateConvolutionProduct), nullptr, {}, Bound},
    {"cuda.depthwise", "cuda", ANYDML_ON_CUDA(CreateConvolutionDepthwiseCuda), nullptr, {}, Bound},
    {"cuda.pointwise", "cuda", ANYDML_ON_CUDA(CreateConvolutionPointwiseCuda), BetterAsProduct, {}, Bound},
    {"cuda.gemm", "cuda", ANYDML_ON_CUDA(CreateConvolutionGemm), BetterWithoutGemm, {}, Bound},
    {"cuda.apart", "cuda", ANYDML_ON_CUDA(CreateConvolutionApart), BetterByTiles, {}, Bound},
    {"cuda.few_floats",
     "cuda",
     ANYDML_ON_CUDA(CreateConvolutionFewFloatsCuda),
     BetterWithoutFewFloats,
     {},
     Bound},
    {"cuda.few_channels", "cuda", ANYDML_ON_CUDA(CreateConvolutionFewChannelsCuda), BetterByTiles, {}, Bound},
    {"cuda.planes", "cuda", ANYDML_ON_CUDA(CreateConvolutionPlanesCuda), BetterWithoutPlanes, {}, Bound},
    {"cuda.cudnn", "cuda", ANYDML_ON_CUDA(CreateConvolutionCudnn), BetterWithoutCudnn, {}, Bound},
    {"cuda.phases", "cuda", ANYDML_ON_CUDA(CreateConvolutionPhasesCuda), BetterByTiles, {}, Bound},
    {"cuda.patches", "cuda", ANYDML_ON_CUDA(CreateConvolutionPatchesCuda), BetterByTiles, {}, Bound},
    {"cuda.steps", "cuda", ANYDML_ON_CUDA(CreateConvolutionStepsCuda), BetterWithoutSteps, {}, Bound},
    {"cuda.channels_last",
     "cuda",
     ANYDML_ON_CUDA(CreateConvolutionChannelsLastCuda),
     BetterByTiles,
     {},
     Bound},
    {"cuda.tiled", "cuda", ANYDML_ON_CUDA(CreateConvolutionTiledCuda), nullptr, {}, Bound},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateConvolutionReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<ConvolutionProblem>> ConvolutionImplementations() { return kImplementations; }
std::span<const char* const> ConvolutionImplementationNames() { return kNames; }

}  // namespace anydml
