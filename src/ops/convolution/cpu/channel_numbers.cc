#include "ops/convolution/cpu/channel_numbers.h"

#include <algorithm>
#include <cmath>

#include "ops/numbers/load_store.h"

namespace anydml {

ChannelNumbers::ChannelNumbers(const ConvolutionProblem& problem, uint64_t width, ScratchLayout* scratch)
    : width_(width), stride_(width * problem.shape.outer[1]) {
  const uint64_t rows = problem.tail && problem.tail->normalization ? 4 : 1;
  numbers_ = scratch->Add("numbers of channels", rows * stride_ * sizeof(float), 64);
}

void ChannelNumbers::Load(const ConvolutionProblem& problem, const KernelArguments& arguments) const {
  const ConvolutionShape& p = problem.shape;
  float* const bias = numbers_.In<float>(arguments.temporary);
  std::fill_n(bias, stride_, 0.0f);
  for (uint64_t group = 0; problem.bias && group < p.outer[1]; ++group) {
    const uint64_t first = group * p.output_channels * *problem.bias;
    FindLoad(problem.type, Class::kF32)(
        arguments.inputs[2].data,
        {.columns = p.output_channels, .column_stride = *problem.bias, .offset = first},
        bias + group * width_);
  }
  if (!problem.tail || !problem.tail->normalization) return;
  const ConvolutionNormalization& normalization = *problem.tail->normalization;
  float *const mean = bias + stride_, *const factor = mean + stride_, *const added = factor + stride_;
  std::fill_n(mean, 3 * stride_, 0.0f);
  const auto number = [&](uint32_t which, uint64_t channel) {
    const auto* const data =
        reinterpret_cast<const float*>(arguments.inputs[ConvolutionTail::kMean + which].data);
    return data[channel * normalization.strides[which]];
  };
  for (uint64_t group = 0; group < p.outer[1]; ++group) {
    for (uint64_t c = 0; c < p.output_channels; ++c) {
      const uint64_t from = group * p.output_channels + c, to = group * width_ + c;
      mean[to] = number(0, from);
      factor[to] = number(2, from) / std::sqrt(number(1, from) + normalization.epsilon);
      added[to] = number(3, from);
    }
  }
}

}  // namespace anydml
