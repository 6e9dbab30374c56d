#include "ops/convolution/problem.h"

namespace anydml::family::convolution {
namespace {

// Vectors of channels would be mostly empty.
std::string BetterByPlanes(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFewChannels = 8;
  return problem.shape.outer[1] < kFewChannels ? "few channels" : "";
}

constexpr Implementation<ConvolutionProblem> kEntries[] = {
    {"cpu.depthwise_channels_last",
     CreateConvolutionDepthwiseChannelsLast,
     BetterByPlanes,
     {},
     ConvolutionBound},
    {"cpu.depthwise_planes", CreateConvolutionDepthwisePlanes, nullptr, {}, ConvolutionBound},
    {"cpu.depthwise", CreateConvolutionDepthwise, nullptr, {}, ConvolutionBound},
    {"cpu.phases", CreateConvolutionPhases, nullptr, {}, ConvolutionBound},
    {.name = "cpu.plane_tiles",
     .create = CreateConvolutionPlaneTiles,
     .better_not = BetterWithoutPlaneTiles,
     .bound = ConvolutionBound,
     .abilities = kAppliesTail | kKeepsSumsInOutput},
    {.name = "cpu.channels_last",
     .create = CreateConvolutionChannelsLast,
     .better_not = BetterWithoutChannelsLast,
     .bound = ConvolutionBound,
     .abilities = kAppliesTail | kKeepsSumsInOutput},
    {"cpu.product", CreateConvolutionProduct, nullptr, {}, ConvolutionBound},
    {.name = "cpu.reference", .create = CreateConvolutionReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<ConvolutionProblem>(kEntries); }

}  // namespace anydml::family::convolution
