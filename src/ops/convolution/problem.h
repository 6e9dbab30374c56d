// CONVOLUTION: output = activation(the sum over input channels and taps of input * filter, + bias), forward
// or backward (transposed), in groups, over one to three spatial dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ops/element/problem.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"

namespace anydml {

const Operator& ConvolutionOperator();

inline constexpr uint32_t kMaxSpatial = 3;

// One spatial dimension.
struct ConvolutionWindow {
  uint32_t input = 1, output = 1, taps = 1;
  uint32_t stride = 1, dilation = 1, start_padding = 0;
  uint32_t reached = 1;  // outputs from here on have no taps (OutputPadding of a forward convolution)
};

// The index of the input that tap `tap` of output `at` reads; -1: none, it counts as 0.
constexpr int64_t InputIndex(const ConvolutionWindow& window, bool backward, uint32_t at, uint32_t tap) {
  if (at >= window.reached) return -1;
  const int64_t reach = int64_t{tap} * window.dilation;
  if (backward) {
    const int64_t spread = int64_t{at} + window.start_padding - reach;
    if (spread < 0 || spread % window.stride != 0) return -1;
    return spread / window.stride < window.input ? spread / window.stride : -1;
  }
  const int64_t index = int64_t{at} * window.stride - window.start_padding + reach;
  return index >= 0 && index < window.input ? index : -1;
}

// The places of a tensor's elements, in elements. Missing dimensions have size 1.
struct ConvolutionTensor {
  std::array<uint64_t, 2> outer{};
  uint64_t channel = 0;         // of a filter: between input channels
  uint64_t output_channel = 0;  // of a filter only
  std::array<uint64_t, kMaxSpatial> spatial{};
  uint64_t offset = 0;

  constexpr uint64_t Matrix(uint64_t outer0, uint64_t outer1) const {
    return offset + outer0 * outer[0] + outer1 * outer[1];
  }
};

// The sums of a convolution, whatever the types. For every pair of outer indices (batch and group) it is a
// product of two matrices: output channels x (input channels and taps) x positions. So a matrix product is a
// convolution with one tap.
struct ConvolutionShape {
  std::array<uint64_t, 2> outer = {1, 1};
  uint64_t input_channels = 1, output_channels = 1;  // per group
  std::array<ConvolutionWindow, kMaxSpatial> windows;
  bool backward = false;
  // Taps of a mirrored filter have negative strides (modulo 2^64) and an offset to the last one.
  ConvolutionTensor input, filter, output;

  uint64_t Taps() const { return uint64_t{windows[0].taps} * windows[1].taps * windows[2].taps; }
  uint64_t Steps() const { return input_channels * Taps(); }
  uint64_t Positions() const { return uint64_t{windows[0].output} * windows[1].output * windows[2].output; }
  uint64_t Matrices() const { return outer[0] * outer[1]; }
  uint64_t Elements() const { return Matrices() * output_channels * Positions(); }
  // Filters of a group are contiguous: [output][input][taps].
  bool HasPackedFilters() const {
    uint64_t distance = 1;
    for (uint32_t d = kMaxSpatial; d-- > 0; distance *= windows[d].taps) {
      if (windows[d].taps > 1 && filter.spatial[d] != distance) return false;
    }
    return (input_channels == 1 || filter.channel == distance) &&
           (output_channels == 1 || filter.output_channel == distance * input_channels);
  }
};

struct ConvolutionLimits {
  float least = -std::numeric_limits<float>::infinity();
  float most = std::numeric_limits<float>::infinity();
};
struct ConvolutionNormalization {
  std::array<uint64_t, 4> strides{};  // between channels: of mean, variance, scale and bias
  float epsilon = 0;
  ConvolutionLimits limits;
};
struct ConvolutionAddition {
  ConvolutionTensor tensor;
  ConvolutionLimits limits;
};

// Operations that a graph merges into a convolution: a BATCH_NORMALIZATION with numbers per channel, then an
// addition, each with RELU or CLIP. Results are rounded to the type before each of them, as they would be in
// memory.
struct ConvolutionTail {
  enum Input { kMean = 3, kVariance, kScale, kBias, kAdded, kInputs };  // in binding order

  std::optional<ConvolutionNormalization> normalization;
  std::optional<ConvolutionAddition> addition;
};

struct ConvolutionProblem {
  static constexpr std::string_view kFamily = "convolution";

  DataType type = DataType::kFloat32;  // or FLOAT16
  ConvolutionShape shape;
  std::optional<uint64_t> bias;  // the stride between channels
  ElementProgram activation;     // on register 0, FLOAT32
  bool filter_is_owned = false;  // OWNED_BY_DML: may be packed at initialisation
  std::optional<ConvolutionTail> tail;
};

Exactness ConvolutionBound(const ConvolutionProblem& problem);

std::unique_ptr<const Kernel> CreateConvolutionDepthwise(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionDepthwisePlanes(const ConvolutionProblem& problem,
                                                               const LowerContext& context,
                                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionDepthwiseChannelsLast(const ConvolutionProblem& problem,
                                                                     const LowerContext& context,
                                                                     std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionChannelsLast(const ConvolutionProblem& problem,
                                                            const LowerContext& context,
                                                            std::string* why_not);
std::string BetterWithoutChannelsLast(const ConvolutionProblem& problem, const LowerContext& context);
std::unique_ptr<const Kernel> CreateConvolutionPlaneTiles(const ConvolutionProblem& problem,
                                                          const LowerContext& context, std::string* why_not);
std::string BetterWithoutPlaneTiles(const ConvolutionProblem& problem, const LowerContext& context);
std::unique_ptr<const Kernel> CreateConvolutionPhases(const ConvolutionProblem& problem,
                                                      const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionProduct(const ConvolutionProblem& problem,
                                                       const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionReference(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionDepthwiseCuda(const ConvolutionProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionPointwiseCuda(const ConvolutionProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionGemm(const ConvolutionProblem& problem,
                                                    const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionApart(const ConvolutionProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionPlanesCuda(const ConvolutionProblem& problem,
                                                          const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionCudnn(const ConvolutionProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionPatchesCuda(const ConvolutionProblem& problem,
                                                           const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionChannelsLastCuda(const ConvolutionProblem& problem,
                                                                const LowerContext& context,
                                                                std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionStepsCuda(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionPhasesCuda(const ConvolutionProblem& problem,
                                                          const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionFewFloatsCuda(const ConvolutionProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionFewChannelsCuda(const ConvolutionProblem& problem,
                                                               const LowerContext& context,
                                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateConvolutionTiledCuda(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not);

}  // namespace anydml
