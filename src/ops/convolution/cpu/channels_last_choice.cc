#include "ops/convolution/cpu/channels_last_choice.h"

#include <algorithm>

#include "ops/convolution/cpu/pixel_filter.h"
#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/convolution/cpu/pixels.h"
#include "ops/convolution/tail.h"

namespace anydml {
namespace {

constexpr uint32_t kWideVector = 8;  // lanes

}  // namespace

std::string WhyNotChannelsLast(const ConvolutionProblem& problem) {
  constexpr double kMostNumbers = 0x1p28;  // of filters, and of a copy of the input
  const ConvolutionShape& p = problem.shape;
  const auto numbers = [](std::initializer_list<uint64_t> factors) {
    double product = 1;
    for (const uint64_t factor : factors) product *= static_cast<double>(factor);
    return product;
  };
  const bool many_taps =
      std::ranges::any_of(p.windows, [](const ConvolutionWindow& w) { return w.taps > kMaxPixelTaps; });
  if (p.backward) return "it is backward";
  if (problem.tail && !TilesCanFinish(problem)) {
    return "before other operators: FLOAT16 that is normalized, or limits that vectors do not compare with";
  }
  if (many_taps) {
    return StrCat("a filter has more than ", kMaxPixelTaps, " taps in one dimension");
  }
  if (numbers({p.outer[1], p.output_channels + 64, p.Steps()}) > kMostNumbers) {
    return "its filters are too large";  // with strides of 0, little memory describes any number of them
  }
  if (numbers({p.Matrices(), p.input_channels, p.windows[0].input, p.windows[1].input, p.windows[2].input}) >
      kMostNumbers) {
    return "its input is too large";
  }
  return "";
}

bool TurnsPieces(const ConvolutionProblem& problem) {
  constexpr uint64_t kFewPixels = kMaxBlockPixels - kMaxTilePixels;  // so that one part has all of them
  const ConvolutionShape& s = problem.shape;
  return !problem.filter_is_owned && s.outer[0] * s.Positions() <= kFewPixels &&
         s.Taps() <= PixelSteps::kMaxPieceTaps && HasFiltersInOrder(s);
}

PixelSteps ChannelsLastSteps(const ConvolutionProblem& problem) {
  // Machines with wide vectors have large caches; 3x3 filters of 64 channels are then one piece.
  constexpr uint64_t kPieceFloats = 32768, kWidePieceFloats = 40960, kLeastSteps = 16;
  const PixelTiles& tiles = ConvolutionPixelTiles();
  const uint64_t most = tiles.lanes < kWideVector ? kPieceFloats : kWidePieceFloats;
  const uint64_t vectors = (problem.shape.output_channels + tiles.lanes - 1) / tiles.lanes;
  const uint64_t width = std::min<uint64_t>(tiles.vectors, vectors) * tiles.lanes;
  return {problem.shape, std::max(most / width, kLeastSteps), TurnsPieces(problem)};
}

bool ChannelsLastKeepsSums(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  const bool in_output =
      problem.type == DataType::kFloat32 && (s.output_channels == 1 || s.output.channel == 1);
  return in_output && ChannelsLastSteps(problem).pieces().size() > 1;
}

// When planes should stay planes.
std::string BetterWithoutChannelsLast(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFewInputChannels = 16;  // this few are transposed anyway
  constexpr uint64_t kFewChannels = 4, kFewPixels = 64, kFewPixelsOfPlanes = 1024, kFewPixelsInOrder = 32;
  const ConvolutionShape& s = problem.shape;
  if (s.output_channels < kFewChannels) return "few output channels";
  const bool from_planes = s.input_channels > kFewInputChannels && s.input.channel != 1,
             to_planes = s.output_channels > 1 && s.output.channel != 1;
  uint64_t least = from_planes || to_planes ? kFewPixelsOfPlanes : kFewPixels;
  if (ConvolutionPixelTiles().lanes >= kWideVector && HasFiltersInOrder(s)) least = kFewPixelsInOrder;
  const bool few = s.outer[0] * s.Positions() < least;
  if (few && !problem.filter_is_owned) return "few pixels, for which filters would be packed every time";
  if (!from_planes && !to_planes) return "";
  // For narrow vectors, panels of planes can be packed, and elements that are read once transposed, in the
  // same time.
  if (ConvolutionPixelTiles().lanes < kWideVector) return "planes, and vectors are short";
  if (from_planes && s.output_channels < ConvolutionPixelTiles().lanes)
    return "planes, and few output channels";
  if (from_planes && to_planes && s.Taps() == 1 && !problem.tail) return "planes, and a single tap";
  const ConvolutionWindow& columns = s.windows[kMaxSpatial - 1];
  const auto is_plane = [&](const ConvolutionTensor& tensor, uint64_t size) {
    return tensor.spatial[kMaxSpatial - 1] == 1 || size == 1;
  };
  const bool turns = (!from_planes || is_plane(s.input, columns.input)) &&
                     (!to_planes || is_plane(s.output, columns.output));
  return turns ? "" : "neither channels nor positions are neighbours in memory";
}

}  // namespace anydml
