#include "ops/convolution/cuda/cudnn/cudnn_layout.h"

#include <algorithm>
#include <utility>

namespace anydml {
namespace {

constexpr uint32_t kMostReach = 1 << 15;  // of strides, dilations and padding

ConvolutionShape ForwardOf(const ConvolutionShape& shape) {
  ConvolutionShape result = shape;
  result.backward = false;
  if (!shape.backward) return result;
  std::swap(result.input, result.output);
  std::swap(result.input_channels, result.output_channels);
  std::swap(result.filter.channel, result.filter.output_channel);
  for (ConvolutionWindow& w : result.windows) {
    std::swap(w.input, w.output);
    w.reached = w.output;
  }
  return result;
}

// The end padding that gives the required number of outputs; that of the beginning if possible. False if
// there is none.
bool EndPadding(const ConvolutionWindow& w, int64_t* padding) {
  const int64_t reach = (int64_t{w.taps} - 1) * w.dilation + 1;
  const auto fits = [&](int64_t end) {
    const int64_t all = int64_t{w.input} + w.start_padding + end - reach;
    return all >= 0 && all / w.stride + 1 == w.output;
  };
  *padding = w.start_padding;
  if (fits(*padding)) return true;
  const int64_t least = (int64_t{w.output} - 1) * w.stride + reach - w.input - w.start_padding;
  *padding = std::max<int64_t>(least, 0);
  return fits(*padding);
}

CudnnTensor TensorOf(const CudnnPacked& packed, DataType type, uint32_t first_dimension) {
  const ConvolutionTensor strides = packed.Strides();
  CudnnTensor result = {type,
                        {{static_cast<int64_t>(packed.images), static_cast<int64_t>(packed.channels)},
                         {static_cast<int64_t>(strides.outer[0]), static_cast<int64_t>(strides.channel)}}};
  for (uint32_t d = first_dimension; d < kMaxSpatial; ++d) {
    result.shape.sizes.push_back(static_cast<int64_t>(packed.sizes[d]));
    result.shape.strides.push_back(static_cast<int64_t>(strides.spatial[d]));
  }
  return result;
}

}  // namespace

ConvolutionTensor CudnnPacked::Strides() const {
  ConvolutionTensor result;
  uint64_t stride = channels_last ? channels : 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; stride *= sizes[d]) result.spatial[d] = stride;
  result.channel = channels_last ? 1 : stride;
  result.outer[0] = channels_last ? stride : stride * channels;
  return result;
}

bool CudnnPacked::Is(const ConvolutionTensor& tensor, uint64_t groups) const {
  const ConvolutionTensor packed = Strides();
  bool same = tensor.offset == 0 && (images == 1 || tensor.outer[0] == packed.outer[0]) &&
              (channels == groups || tensor.channel == packed.channel) &&
              (groups == 1 || tensor.outer[1] == packed.channel * (channels / groups));
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    same = same && (sizes[d] == 1 || tensor.spatial[d] == packed.spatial[d]);
  }
  return same;
}

std::string CudnnLayout::Set(const ConvolutionProblem& p) {
  const ConvolutionShape& s = p.shape;
  if (s.input.offset != 0 || s.output.offset != 0) return "a tensor does not begin with its first element";
  for (const ConvolutionWindow& w : s.windows) {
    if (w.reached != w.output) return "there are outputs without taps";
    if (std::max({w.stride, w.dilation, w.start_padding}) > kMostReach) {
      return StrCat("it is for strides, dilations and padding of up to ", kMostReach);
    }
  }
  const uint64_t unit = 16 / (BitSize(p.type) / 8);
  if (s.backward && (s.input_channels % unit != 0 || s.output_channels % unit != 0)) {
    return StrCat("it is for multiples of ", unit, " channels, backward");
  }
  forward = ForwardOf(s);
  const uint64_t groups = s.outer[1];
  const auto& w = s.windows;
  input = {s.outer[0], groups * s.input_channels, {w[0].input, w[1].input, w[2].input}, false};
  output = {s.outer[0], groups * s.output_channels, {w[0].output, w[1].output, w[2].output}, false};
  filter = {
      groups * forward.output_channels, forward.input_channels, {w[0].taps, w[1].taps, w[2].taps}, false};
  // Its images are output channels, of all groups.
  ConvolutionTensor true_filter = forward.filter;
  true_filter.outer[0] = true_filter.output_channel;
  const bool in_order = groups == 1 || true_filter.outer[1] == true_filter.outer[0] * forward.output_channels;
  channels_last = p.type == DataType::kFloat16 || !input.Is(s.input, groups) ||
                  !output.Is(s.output, groups) || !in_order || !filter.Is(true_filter, 1);
  input_channels = static_cast<uint32_t>(s.input_channels);
  filter_channels = static_cast<uint32_t>(forward.input_channels);
  if (channels_last) {
    input_channels = static_cast<uint32_t>((s.input_channels + unit - 1) / unit * unit);
    if (!s.backward) filter_channels = input_channels;  // for backward convolutions they are whole units
    input.channels = groups * input_channels;
    filter.channels = filter_channels;
    input.channels_last = output.channels_last = filter.channels_last = true;
  }
  packs_input = input_channels != s.input_channels || !input.Is(s.input, groups);
  packs_filter = filter_channels != forward.input_channels || !in_order || !filter.Is(true_filter, 1);
  packs_output = !output.Is(s.output, groups);

  const uint32_t first = w[0].input > 1 || w[0].output > 1 || w[0].taps > 1 ? 0 : 1;
  problem = {};
  problem.backward = s.backward;
  problem.w = TensorOf(filter, p.type, first);
  problem.x = TensorOf(s.backward ? output : input, p.type, first);
  problem.y = TensorOf(s.backward ? input : output, p.type, first);
  for (uint32_t d = first; d < kMaxSpatial; ++d) {
    const ConvolutionWindow& window = forward.windows[d];
    int64_t end = 0;
    if (!EndPadding(window, &end)) return "there are more or fewer outputs than cuDNN's formula gives";
    problem.windows.steps.push_back(window.stride);
    problem.windows.dilations.push_back(window.dilation);
    problem.windows.pre_paddings.push_back(window.start_padding);
    problem.windows.post_paddings.push_back(end);
  }
  return "";
}

}  // namespace anydml
