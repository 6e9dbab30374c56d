// Places of a convolution's operands, for a device's threads.
#pragma once

#include "ops/convolution/plan.h"
#include "ops/device/cuda/tile_product.cuh"

namespace anydml {

__device__ inline uint64_t MatrixOf(const DeviceShape& s, const ConvolutionTensor& tensor, uint32_t matrix) {
  return tensor.offset + matrix / s.inner * tensor.outer[0] + matrix % s.inner * tensor.outer[1];
}

// Splits a number into three coordinates; returns the remainder.
__device__ inline uint32_t SplitNumber(const FastDivisor (&sizes)[kMaxSpatial], uint32_t number,
                                       uint32_t (&at)[kMaxSpatial]) {
#pragma unroll
  for (int d = kMaxSpatial - 1; d >= 0; --d) number = sizes[d].Divide(number, &at[d]);
  return number;
}

__device__ inline uint64_t OutputOffset(const DeviceShape& s, uint32_t matrix, uint32_t channel,
                                        uint32_t position) {
  uint32_t at[kMaxSpatial];
  SplitNumber(s.outputs, position, at);
  uint64_t offset = MatrixOf(s, s.output, matrix) + channel * s.output.channel;
#pragma unroll
  for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at[d] * s.output.spatial[d];
  return offset;
}

// Of the filter, for an output channel and a step.
__device__ inline uint64_t FilterOffset(const DeviceShape& s, uint64_t base, uint32_t channel,
                                        uint32_t step) {
  uint32_t at[kMaxSpatial];
  uint64_t offset =
      base + channel * s.filter.output_channel + SplitNumber(s.taps, step, at) * s.filter.channel;
#pragma unroll
  for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at[d] * s.filter.spatial[d];
  return offset;
}

// The window of one position.
struct DeviceWindow {
  const DeviceShape& shape;
  uint64_t base;
  uint32_t at[kMaxSpatial];
  bool inside;

  __device__ DeviceWindow(const DeviceShape& of, uint32_t matrix, uint32_t position)
      : shape(of), base(MatrixOf(of, of.input, matrix)), inside(position < of.positions) {
    SplitNumber(shape.outputs, inside ? position : 0, at);
  }

  // The place of a step's input element; false: outside, it counts as 0.
  __device__ bool Find(uint32_t step, uint64_t* offset) const {
    if (!inside) return false;
    uint32_t taps[kMaxSpatial];
    *offset = base + SplitNumber(shape.taps, step, taps) * shape.input.channel;
#pragma unroll
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      const int64_t index = InputIndex(shape.windows[d], shape.backward, at[d], taps[d]);
      if (index < 0) return false;
      *offset += static_cast<uint64_t>(index) * shape.input.spatial[d];
    }
    return true;
  }
};

}  // namespace anydml
