#include "ops/convolution/cpu/phase_memory.h"

#include <algorithm>

#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"

namespace anydml {
namespace {

constexpr uint32_t kLastAxis = kMaxSpatial - 1;
constexpr double kMostCopied = 0x1p28;  // larger copies are not worth the memory

// Sizes of the convolution's images, or of one phase.
struct PhaseSizes {
  uint64_t positions[kMaxSpatial];
  uint64_t phases[kMaxSpatial];
  uint64_t image = 1, count = 1;  // positions per phase; number of phases

  explicit PhaseSizes(const ConvolutionShape& shape) {
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      const ConvolutionWindow& w = shape.windows[d];
      phases[d] = w.stride;
      positions[d] = w.output / w.stride;
      image *= positions[d];
      count *= phases[d];
    }
  }
};

bool PhasesAreEqual(const ConvolutionShape& shape) {
  return std::ranges::all_of(shape.windows,
                             [](const ConvolutionWindow& w) { return w.output % w.stride == 0; });
}

PhasePlanes MakePlanes(const ConvolutionShape& shape, DataType type, uint64_t channel_stride,
                       uint64_t phase_stride, uint32_t threads) {
  const PhaseSizes sizes(shape);
  ConvolutionTensor tensor;
  tensor.channel = channel_stride;
  tensor.outer[1] = shape.output_channels * channel_stride;
  tensor.outer[0] = shape.outer[1] * tensor.outer[1];
  uint64_t position_stride = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; position_stride *= sizes.positions[d]) {
    tensor.spatial[d] = position_stride;
  }
  const ConvolutionTensor& output = shape.output;
  LoopNest<2> nest;
  for (uint32_t d = 0; d < 2; ++d) nest.Append(shape.outer[d], {tensor.outer[d], output.outer[d]});
  nest.Append(shape.output_channels, {tensor.channel, output.channel});
  uint64_t later = sizes.count;  // number of phases in the dimensions after this one
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    later /= sizes.phases[d];
    nest.Append(sizes.positions[d], {tensor.spatial[d], output.spatial[d] * sizes.phases[d]});
    nest.Append(sizes.phases[d], {later * phase_stride, output.spatial[d]});
  }
  return {tensor, phase_stride, output.offset, {SortedByStride(nest, NestCopy::kTo), type, threads}};
}

// Whether there is something to gain, and enough memory.
bool WantsPlanes(const ConvolutionShape& shape) {
  if (shape.windows[kLastAxis].stride == 1 || shape.output.spatial[kLastAxis] != 1) return false;
  // The loops of all dimensions must fit into a nest.
  const PhaseSizes sizes(shape);
  if (sizes.phases[0] > 1) return false;
  return PhasesAreEqual(shape) && static_cast<double>(shape.Matrices()) *
                                          static_cast<double>(shape.output_channels) *
                                          static_cast<double>(shape.Positions()) <=
                                      kMostCopied;
}

}  // namespace

PhaseCopy::PhaseCopy(const LoopNest<2>& nest, DataType type, uint32_t threads)
    : copy_(nest, BitSize(type) / 8, Iterations(nest) * (BitSize(type) / 8) >= kStreamBytes),
      parts_(PartsForBytes(copy_.bytes(), threads)) {}

void PhaseCopy::Run(const std::byte* from, std::byte* to, Executor* executor) const {
  ParallelFor(executor, parts_, [&](uint32_t part) { copy_.Run(from, to, part, parts_); });
}

std::optional<TurnedFilter> TurnedFilter::Create(const ConvolutionProblem& problem, uint32_t threads) {
  const ConvolutionShape& shape = problem.shape;
  const ConvolutionTensor& filter = shape.filter;
  if (problem.filter_is_owned || shape.output_channels == 1 || filter.output_channel == 1 ||
      filter.outer[0] != 0) {
    return std::nullopt;
  }
  const double elements = static_cast<double>(shape.outer[1]) * static_cast<double>(shape.Steps()) *
                          static_cast<double>(shape.output_channels);
  if (elements > kMostCopied) return std::nullopt;
  ConvolutionTensor turned;
  turned.output_channel = 1;
  uint64_t stride = shape.output_channels;
  for (uint32_t d = kMaxSpatial; d-- > 0; stride *= shape.windows[d].taps) turned.spatial[d] = stride;
  turned.channel = stride;
  turned.outer[1] = shape.input_channels * stride;
  LoopNest<2> nest;
  nest.Append(shape.outer[1], {filter.outer[1], turned.outer[1]});
  nest.Append(shape.input_channels, {filter.channel, turned.channel});
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    nest.Append(shape.windows[d].taps, {filter.spatial[d], turned.spatial[d]});
  }
  nest.Append(shape.output_channels, {filter.output_channel, 1});
  return TurnedFilter{filter.offset, turned, {nest, problem.type, threads}};
}

std::optional<PhasePlanes> PhasePlanes::Create(const ConvolutionProblem& problem, uint32_t threads) {
  if (!WantsPlanes(problem.shape)) return std::nullopt;
  const uint64_t image = PhaseSizes(problem.shape).image;
  return MakePlanes(problem.shape, problem.type, image,
                    problem.shape.Matrices() * problem.shape.output_channels * image, threads);
}

std::optional<PhasePlanes> PhasePlanes::CreateJoined(const ConvolutionProblem& problem, uint32_t threads) {
  const ConvolutionShape& shape = problem.shape;
  if (!WantsPlanes(shape)) return std::nullopt;
  uint64_t neighbours = 1;  // the stride that continues the taps so far
  for (uint32_t d = kMaxSpatial; d-- > 0; neighbours *= shape.windows[d].taps) {
    const ConvolutionWindow& w = shape.windows[d];
    if (w.taps != w.stride || w.start_padding != 0 || w.dilation != 1) return std::nullopt;
    if (uint64_t{w.input} * w.stride != w.output) return std::nullopt;
    if (w.taps > 1 && shape.filter.spatial[d] != neighbours) return std::nullopt;
  }
  if (shape.output_channels > 1 && shape.filter.output_channel != neighbours) return std::nullopt;
  const PhaseSizes sizes(shape);
  return MakePlanes(shape, problem.type, sizes.count * sizes.image, sizes.image, threads);
}

ConvolutionProblem JoinPhases(const ConvolutionProblem& problem, const PhasePlanes& planes) {
  ConvolutionProblem joined = problem;
  ConvolutionShape& shape = joined.shape;
  shape.backward = false;
  shape.output_channels *= shape.Taps();
  shape.filter.output_channel = 1;
  shape.output = planes.tensor;
  shape.output.channel = planes.phase_stride;
  for (ConvolutionWindow& window : shape.windows) {
    window = {.input = window.input, .output = window.input, .reached = window.input};
  }
  if (joined.bias) joined.bias = 1;
  return joined;
}

}  // namespace anydml
