// The places of the operands of a product of windows with filters, and the units in which they are moved.
#pragma once

#include "ops/convolution/cuda/channels_last.cuh"
#include "ops/convolution/cuda/product_cut.h"
#include "ops/convolution/problem.h"
#include "ops/device/cuda/copies.cuh"
#include "ops/device/cuda/units.cuh"

namespace anydml {

inline constexpr uint64_t kMostElements = uint64_t{1} << 31;  // of an operand, so that offsets fit into 32
                                                              // bits

// The largest unit in which contiguous elements of `target` can be stored.
inline uint32_t StoreUnit(const ConvolutionShape& shape, const ConvolutionTensor& target, bool by_channels,
                          uint32_t element_bytes) {
  uint64_t elements = target.offset;
  const auto add = [&](uint64_t size, uint64_t stride) {
    if (size > 1) elements |= stride;
  };
  add(shape.outer[0], target.outer[0]);
  add(shape.outer[1], target.outer[1]);
  if (by_channels) {
    elements |= shape.output_channels;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) add(shape.windows[d].output, target.spatial[d]);
  } else {
    elements |= shape.Positions();
    add(shape.output_channels, target.channel);
    uint64_t stride = 1;
    for (uint32_t d = kMaxSpatial; d-- > 0; stride *= shape.windows[d].output) {
      if (shape.windows[d].output > 1 && target.spatial[d] != stride) return element_bytes;
    }
  }
  return LargestUnit(elements * element_bytes);
}

inline uint32_t UnitOf(DataType type) { return 16 / (BitSize(type) / 8); }
inline uint64_t PaddedChannels(const ConvolutionProblem& problem) {
  const uint64_t unit = UnitOf(problem.type);
  return DivideUp(problem.shape.input_channels, unit) * unit;
}

// Why a problem is not a product of windows with filters, or `phases` of them; empty if it is.
inline std::string WhyNotChannelsLast(const ConvolutionProblem& problem, uint64_t phases = 1) {
  const ConvolutionShape& s = problem.shape;
  if (s.backward) return "it is for forward convolutions";
  for (const ConvolutionWindow& window : s.windows) {
    if (window.taps > kMostWindowTaps) {
      return StrCat("it is for up to ", kMostWindowTaps, " taps in a dimension; there are ", window.taps);
    }
  }
  const uint64_t taps = s.Taps() * phases;
  if (taps > kMostPackedTaps) {
    return StrCat("it is for up to ", kMostPackedTaps, " taps; there are ", taps);
  }
  // The product of all sizes need not fit into 64 bits.
  const auto too_many = [](std::initializer_list<uint64_t> sizes) {
    uint64_t product = 1;
    for (uint64_t size : sizes) {
      if (size >= kMostElements / product) return true;
      product *= size;
    }
    return false;
  };
  const uint64_t channels = PaddedChannels(problem);
  if (too_many(
          {s.outer[0], s.outer[1], channels, s.windows[0].input, s.windows[1].input, s.windows[2].input}) ||
      too_many({s.outer[0], s.outer[1], s.output_channels, s.windows[0].output, s.windows[1].output,
                s.windows[2].output, phases}) ||
      too_many({s.outer[1], s.output_channels, taps, channels})) {
    return StrCat("it is for tensors of fewer than ", kMostElements, " elements");
  }
  return "";
}

// Whether all offsets in the input fit into 31 bits.
inline bool IsNear(const ConvolutionShape& s) {
  uint64_t last = s.input.offset;
  const auto add = [&](uint64_t size, uint64_t stride) { last += (size - 1) * stride; };
  add(s.outer[0], s.input.outer[0]);
  add(s.outer[1], s.input.outer[1]);
  add(s.input_channels, s.input.channel);
  for (uint32_t d = 0; d < kMaxSpatial; ++d) add(s.windows[d].input, s.input.spatial[d]);
  return last < kMostElements;
}

// Whether a window's units can be read in place. Of the last unit only existing elements are read.
inline bool HasUnits(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  uint64_t elements = s.input.offset;
  const auto add = [&](uint64_t size, uint64_t stride) {
    if (size > 1) elements |= stride;
  };
  add(s.outer[0], s.input.outer[0]);
  add(s.outer[1], s.input.outer[1]);
  for (uint32_t d = 0; d < kMaxSpatial; ++d) add(s.windows[d].input, s.input.spatial[d]);
  return s.input.channel == 1 && elements % UnitOf(problem.type) == 0 && IsNear(s);
}

inline bool HasFilterRows(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  const ConvolutionTensor& f = s.filter;
  const uint64_t elements = s.input_channels | f.offset | (s.output_channels > 1 ? f.output_channel : 0) |
                            (s.outer[1] > 1 ? f.outer[1] : 0);
  return s.Taps() == 1 && f.channel == 1 && elements % UnitOf(problem.type) == 0 &&
         f.output_channel * s.output_channels < kMostElements;
}

// Why what follows the sums cannot be applied where they are stored, although something follows.
inline std::string WhyNotTail(const ConvolutionProblem& problem) {
  SumLimits limits;
  if (!limits.Set(problem.activation)) return "an activation other than RELU and CLIP is before the tail";
  if (!problem.tail->addition) return "";
  const ConvolutionShape& s = problem.shape;
  const ConvolutionTensor &added = problem.tail->addition->tensor, &output = s.output;
  bool same = added.offset == output.offset;
  const auto compare = [&](uint64_t size, uint64_t a, uint64_t b) { same = same && (size == 1 || a == b); };
  compare(s.outer[0], added.outer[0], output.outer[0]);
  compare(s.outer[1], added.outer[1], output.outer[1]);
  compare(s.output_channels, added.channel, output.channel);
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    compare(s.windows[d].output, added.spatial[d], output.spatial[d]);
  }
  return same ? "" : "what is added does not lie as the output does";
}

inline WindowTail TailOf(const ConvolutionTail& given, const KernelArguments& arguments) {
  WindowTail tail = {};
  if (given.normalization) {
    for (uint32_t i = 0; i < 4; ++i) {
      tail.numbers[i] = arguments.inputs[ConvolutionTail::kMean + i].data;
      tail.strides[i] = given.normalization->strides[i];
    }
    tail.epsilon = given.normalization->epsilon;
    tail.limits = {given.normalization->limits.least, given.normalization->limits.most};
  }
  if (given.addition) {
    tail.added = arguments.inputs[ConvolutionTail::kAdded].data;
    tail.sum_limits = {given.addition->limits.least, given.addition->limits.most};
  }
  return tail;
}

// Channels-last images: [image][positions][group][padded channel].
inline ConvolutionTensor PackedInput(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  ConvolutionTensor packed;
  packed.channel = 1;
  packed.outer[1] = PaddedChannels(problem);
  uint64_t stride = packed.outer[1] * s.outer[1];
  for (uint32_t d = kMaxSpatial; d-- > 0; stride *= s.windows[d].input) packed.spatial[d] = stride;
  packed.outer[0] = stride;
  return packed;
}

// Sets the parts of a product that the shape determines; `input` is the place of images.
inline void SetWindows(const ConvolutionShape& s, const ConvolutionTensor& input, WindowProduct* p) {
  p->columns = static_cast<uint32_t>(s.output_channels);
  p->channels = static_cast<uint32_t>(s.input_channels);
  p->groups = FastDivisor(static_cast<uint32_t>(s.outer[1]));
  p->positions = FastDivisor(static_cast<uint32_t>(s.Positions()));
  p->image_stride = static_cast<uint32_t>(input.outer[0]);
  p->input_group = input.outer[1];
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    p->windows[d] = s.windows[d];
    p->outputs[d] = FastDivisor(s.windows[d].output);
    p->taps[d] = FastDivisor(s.windows[d].taps);
    p->spatial_strides[d] = static_cast<uint32_t>(input.spatial[d]);
    p->tap_strides[d] = static_cast<uint32_t>(s.windows[d].dilation * input.spatial[d]);
  }
}

inline LoopNest<2> InputNest(const ConvolutionShape& s, const ConvolutionTensor& to) {
  LoopNest<2> nest;
  nest.Append(s.outer[0], {s.input.outer[0], to.outer[0]});
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    nest.Append(s.windows[d].input, {s.input.spatial[d], to.spatial[d]});
  }
  nest.Append(s.outer[1], {s.input.outer[1], to.outer[1]});
  nest.Append(s.input_channels, {s.input.channel, to.channel});
  return SortedByStride(nest, DeviceCopy::kTo);
}

}  // namespace anydml
