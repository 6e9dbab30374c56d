// A convolution's operands as a device's threads find them.
#pragma once

#include <algorithm>

#include "ops/convolution/problem.h"
#include "ops/device/nest.h"
#include "ops/gemm/cuda/tile_product.cuh"

namespace anydml {

struct DeviceShape {
  ConvolutionWindow windows[kMaxSpatial];
  ConvolutionTensor input, filter, output;
  uint32_t inner;  // outer[1]
  uint32_t matrices;
  uint32_t output_channels, positions, steps;
  FastDivisor taps[kMaxSpatial], outputs[kMaxSpatial];
  TilePlan plan;
  bool backward;

  DeviceShape() = default;
  DeviceShape(const ConvolutionShape& shape, uint32_t multiprocessors)
      : input(shape.input),
        filter(shape.filter),
        output(shape.output),
        inner(static_cast<uint32_t>(shape.outer[1])),
        matrices(static_cast<uint32_t>(shape.Matrices())),
        output_channels(static_cast<uint32_t>(shape.output_channels)),
        positions(static_cast<uint32_t>(shape.Positions())),
        steps(static_cast<uint32_t>(shape.Steps())),
        plan(matrices, output_channels, positions, steps, multiprocessors),
        backward(shape.backward) {
    std::copy(shape.windows.begin(), shape.windows.end(), windows);
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      taps[d] = FastDivisor(shape.windows[d].taps);
      outputs[d] = FastDivisor(shape.windows[d].output);
    }
  }

  __device__ uint64_t MatrixOf(const ConvolutionTensor& tensor, uint32_t matrix) const {
    return tensor.offset + matrix / inner * tensor.outer[0] + matrix % inner * tensor.outer[1];
  }

  // A number as three coordinates and what is left of it.
  __device__ static uint32_t Split(const FastDivisor (&sizes)[kMaxSpatial], uint32_t number,
                                   uint32_t (&at)[kMaxSpatial]) {
#pragma unroll
    for (int d = kMaxSpatial - 1; d >= 0; --d) number = sizes[d].Divide(number, &at[d]);
    return number;
  }

  __device__ uint64_t OutputOffset(uint32_t matrix, uint32_t channel, uint32_t position) const {
    uint32_t at[kMaxSpatial];
    Split(outputs, position, at);
    uint64_t offset = MatrixOf(output, matrix) + channel * output.channel;
#pragma unroll
    for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at[d] * output.spatial[d];
    return offset;
  }

  // Of the filter, for an output channel and a step.
  __device__ uint64_t FilterOffset(uint64_t base, uint32_t channel, uint32_t step) const {
    uint32_t at[kMaxSpatial];
    uint64_t offset = base + channel * filter.output_channel + Split(taps, step, at) * filter.channel;
#pragma unroll
    for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at[d] * filter.spatial[d];
    return offset;
  }
};

// The window of one position.
struct DeviceWindow {
  const DeviceShape& shape;
  uint64_t base;
  uint32_t at[kMaxSpatial];
  bool inside;

  __device__ DeviceWindow(const DeviceShape& of, uint32_t matrix, uint32_t position)
      : shape(of), base(of.MatrixOf(of.input, matrix)), inside(position < of.positions) {
    DeviceShape::Split(shape.outputs, inside ? position : 0, at);
  }

  // Where a step's element of the input is; false: nowhere, it counts as 0.
  __device__ bool Find(uint32_t step, uint64_t* offset) const {
    if (!inside) return false;
    uint32_t taps[kMaxSpatial];
    *offset = base + DeviceShape::Split(shape.taps, step, taps) * shape.input.channel;
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
