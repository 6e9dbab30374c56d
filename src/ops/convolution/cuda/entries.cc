#include <algorithm>

#include "ops/convolution/problem.h"

namespace anydml::family::convolution {
namespace {

bool IsSmall(const ConvolutionProblem& problem) {
  return problem.shape.Elements() * problem.shape.Steps() < uint64_t{1} << 22;
}

std::string BetterWithoutGemm(const ConvolutionProblem& problem, const LowerContext&) {
  return IsSmall(problem) ? "a small convolution" : "";
}

// For convolutions that are compute-bound, or whose few positions leave threads with many channels.
std::string BetterAsProduct(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFewChannels = 64, kMostChannels = 384, kFewPositions = 1 << 14, kFewProducts = 1 << 13;
  const ConvolutionShape& s = problem.shape;
  const uint64_t inputs = s.input_channels, outputs = s.output_channels;
  if (std::min(inputs, outputs) > kFewChannels || outputs > kMostChannels) return "many channels";
  const bool few = s.outer[0] * s.Positions() < kFewPositions;
  return few && inputs * outputs > kFewProducts ? "many channels for few positions" : "";
}

// For convolutions where converting operands costs more than it saves.
std::string BetterByTiles(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFewSteps = 64;
  return IsSmall(problem) && problem.shape.Steps() < kFewSteps ? "a small convolution of few steps" : "";
}

// Its tiles are large, one per multiprocessor: they should fill the device, and be full. With contiguous
// channels it reads single numbers; then two smaller tiles at a time are faster.
std::string BetterWithoutSteps(const ConvolutionProblem& problem, const LowerContext& context) {
  constexpr uint64_t kTileRows = 96, kTileColumns = 128;
  constexpr double kLeast = 0.75;  // of all that blocks could compute at a time
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

// For single images; batches of them in planes are left to cuDNN.
std::string BetterWithoutFewFloats(const ConvolutionProblem& problem, const LowerContext& context) {
  constexpr uint64_t kManyProducts = uint64_t{1} << 29;
  const ConvolutionShape& s = problem.shape;
  if (IsInPlanes(s) && s.Elements() * s.Steps() >= kManyProducts) return "many images in planes";
  return BetterByTiles(problem, context);
}

// For convolutions where cuDNN, with the conversions around it, is not slower on an H200: with many channels
// these cost little compared to the products; long rows are cut into overlapping strips; and packing filters
// in each run costs as much as is saved, unless they are few and in order, so that blocks pack them.
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

// For convolutions where cuDNN's kernels are not faster than ours on an H200. Products are of single numbers.
std::string BetterWithoutCudnn(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kManyProducts = uint64_t{1} << 26, kFewChannels = 4;
  const ConvolutionShape& s = problem.shape;
  if (s.Elements() * s.Steps() < kManyProducts) return "a small convolution";
  if (s.input_channels == 1) return "filters of one channel";
  if (problem.type == DataType::kFloat16) return "";
  // Without tensor cores: few channels in planes, which ours would have to gather.
  return IsInPlanes(s) && s.input_channels <= kFewChannels && !s.backward
             ? ""
             : "FLOAT32, not of few channels in planes";
}

// NVIDIA's libraries take FLOAT16 convolutions and matrix products, except products of few channels and
// planes: they are faster than our kernels by more than a pass over the output. So the operations after a
// convolution are done where the library's results are converted or get a bias.
template <CreateFunction<ConvolutionProblem>* kCreate, DataType kType, bool kOneTap>
std::unique_ptr<const Kernel> OrWithTail(const ConvolutionProblem& problem, const LowerContext& context,
                                         std::string* why_not) {
  constexpr uint64_t kFewChannels = 4;
  const ConvolutionShape& s = problem.shape;
  if (problem.tail && (s.backward || s.input_channels <= kFewChannels || problem.type != kType ||
                       (s.Taps() == 1) != kOneTap)) {
    *why_not = "a pass of its own for what follows is faster";
    return nullptr;
  }
  return kCreate(problem, context, why_not);
}
constexpr DataType kHalf = DataType::kFloat16, kFloat = DataType::kFloat32;

constexpr Implementation<ConvolutionProblem> kEntries[] = {
    {"cuda.depthwise", CreateConvolutionDepthwiseCuda, nullptr, {}, ConvolutionBound},
    {.name = "cuda.pointwise",
     .create = OrWithTail<CreateConvolutionPointwiseCuda, kHalf, true>,
     .better_not = BetterAsProduct,
     .bound = ConvolutionBound,
     .abilities = kAppliesTail},
    {.name = "cuda.gemm",
     .create = OrWithTail<CreateConvolutionGemm, kHalf, true>,
     .better_not = BetterWithoutGemm,
     .bound = ConvolutionBound,
     .abilities = kAppliesTail},
    {"cuda.apart", CreateConvolutionApart, BetterByTiles, {}, ConvolutionBound},
    {"cuda.few_floats", CreateConvolutionFewFloatsCuda, BetterWithoutFewFloats, {}, ConvolutionBound},
    {"cuda.few_channels", CreateConvolutionFewChannelsCuda, BetterByTiles, {}, ConvolutionBound},
    {.name = "cuda.planes",
     .create = OrWithTail<CreateConvolutionPlanesCuda, kHalf, false>,
     .better_not = BetterWithoutPlanes,
     .bound = ConvolutionBound,
     .abilities = kAppliesTail},
    {.name = "cuda.cudnn",
     .create = OrWithTail<CreateConvolutionCudnn, kHalf, false>,
     .better_not = BetterWithoutCudnn,
     .bound = ConvolutionBound,
     .abilities = kAppliesTail},
    {"cuda.phases", CreateConvolutionPhasesCuda, BetterByTiles, {}, ConvolutionBound},
    {"cuda.patches", CreateConvolutionPatchesCuda, BetterByTiles, {}, ConvolutionBound},
    {"cuda.steps", CreateConvolutionStepsCuda, BetterWithoutSteps, {}, ConvolutionBound},
    {.name = "cuda.channels_last",
     .create = OrWithTail<CreateConvolutionChannelsLastCuda, kFloat, false>,
     .better_not = BetterByTiles,
     .bound = ConvolutionBound,
     .abilities = kAppliesTail},
    {"cuda.tiled", CreateConvolutionTiledCuda, nullptr, {}, ConvolutionBound},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<ConvolutionProblem>(kEntries); }

}  // namespace anydml::family::convolution
