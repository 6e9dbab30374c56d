// Convolutions whose filters have one input channel: nothing but their taps is added up.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "ops/common/cuda_chain.cuh"
#include "ops/convolution/cuda/activation.h"
#include "ops/convolution/cuda/windows.cuh"

namespace anydml {

struct ConvolutionParameters {
  DeviceShape shape;
  const void* input;
  const void* filter;
  const void* bias;
  void* output;
  float* parts;  // sums of parts [part][matrix][channel][position]; null: the product is not cut
  uint64_t bias_stride;
  SumLimits limits;
  bool half_output;
  // Depthwise only: runs of a row of outputs; bands of rows; output channels of a group; groups, or vectors
  // of them.
  FastDivisor runs, bands, channels, groups;
  uint64_t threads;  // that have something to do
  uint32_t planes;   // of a block
  // By columns: rows of a band; lines of threads that have the runs of a band, all of them and those of a
  // warp.
  uint32_t band_rows, all_lines, warp_lines;
};

__device__ inline float LoadNumber(const void* data, uint64_t at, float) {
  return static_cast<const float*>(data)[at];
}
__device__ inline float LoadNumber(const void* data, uint64_t at, __half) {
  return __half2float(static_cast<const __half*>(data)[at]);
}

template <typename T>
__device__ void FinishSum(const ConvolutionParameters& p, uint32_t matrix, uint32_t channel,
                          uint32_t position, float sum) {
  if (p.bias != nullptr) {
    const uint64_t group = matrix % p.shape.inner;
    sum += LoadNumber(p.bias, (group * p.shape.output_channels + channel) * p.bias_stride, T());
  }
  sum = p.limits.Of(sum);
  const uint64_t at = p.shape.OutputOffset(matrix, channel, position);
  if (p.half_output) {
    static_cast<__half*>(p.output)[at] = __float2half_rn(sum);
  } else {
    static_cast<float*>(p.output)[at] = sum;
  }
}

// More channels or taps are better off as a product.
inline constexpr uint32_t kDepthwiseChannels = 4, kDepthwiseTaps = 128;

// Outputs beside each other that a thread has.
inline constexpr uint32_t kDepthwiseRun = 4;

// Rows of 3 taps side by side, a stride of 1 or 2; indices that 31 bits hold.
inline bool HasThreeTaps(const ConvolutionShape& shape) {
  const ConvolutionWindow& x = shape.windows[kMaxSpatial - 1];
  for (const ConvolutionWindow& window : shape.windows) {
    const uint64_t reach = uint64_t{window.output} * window.stride + uint64_t{window.taps} * window.dilation;
    if (reach + window.input + window.start_padding >= uint64_t{1} << 30 || window.reached < window.output)
      return false;
  }
  return !shape.backward && x.taps == 3 && x.dilation == 1 && (x.stride == 1 || x.stride == 2) &&
         shape.windows[0].taps == 1 && shape.windows[0].output == 1 && shape.windows[0].start_padding == 0;
}

inline constexpr uint32_t kDepthwiseRows = 7;  // of a band: images of networks have multiples of it
inline constexpr uint32_t kDepthwiseVector = 4;

// 3x3 taps and rows of whole vectors of four numbers. Addresses are multiples of 16 bytes.
inline bool HasDepthwiseRows(const ConvolutionShape& s) {
  constexpr uint32_t kX = kMaxSpatial - 1, kY = kX - 1;
  const ConvolutionWindow &x = s.windows[kX], &y = s.windows[kY];
  if (!HasThreeTaps(s) || x.start_padding != 1 || y.taps != 3 || y.dilation != 1 || y.stride != x.stride) {
    return false;
  }
  if (s.input.spatial[kX] != 1 || s.output.spatial[kX] != 1) return false;
  uint64_t elements = x.input | x.output | s.input.offset | s.output.offset;
  const auto add = [&](uint64_t size, uint64_t input, uint64_t output) {
    if (size > 1) elements |= input | output;
  };
  add(s.outer[0], s.input.outer[0], s.output.outer[0]);
  add(s.outer[1], s.input.outer[1], s.output.outer[1]);
  add(s.output_channels, 0, s.output.channel);
  add(y.input, s.input.spatial[kY], 0);
  add(y.output, 0, s.output.spatial[kY]);
  return elements % kDepthwiseVector == 0 && s.Elements() < uint64_t{1} << 32;
}

// The same with a stride of 1 where a warp has whole rows, and nothing right of them is read.
inline bool HasDepthwiseColumns(const ConvolutionShape& s) {
  const ConvolutionWindow& x = s.windows[kMaxSpatial - 1];
  return HasDepthwiseRows(s) && x.stride == 1 && x.output <= 32 * kDepthwiseVector && x.input <= x.output;
}

// How many whole channels a block brings into shared memory; 0: images have gaps, or too large channels.
inline uint32_t DepthwisePlaneCount(const ConvolutionShape& s, uint32_t element_bytes) {
  constexpr uint32_t kX = kMaxSpatial - 1, kY = kX - 1;
  constexpr uint64_t kMostBytes = 50 << 10, kEnoughBytes = 32 << 10;
  const ConvolutionWindow &x = s.windows[kX], &y = s.windows[kY];
  const uint64_t elements = uint64_t{x.input} * y.input, bytes = elements * element_bytes;
  const auto follows = [](uint64_t size, uint64_t stride, uint64_t expected) {
    return size == 1 || stride == expected;
  };
  if (!HasDepthwiseRows(s) || s.output_channels != 1 || s.Matrices() >= uint64_t{1} << 31 ||
      bytes > kMostBytes || s.windows[0].input != 1 || !follows(y.input, s.input.spatial[kY], x.input) ||
      !follows(s.outer[1], s.input.outer[1], elements) ||
      !follows(s.outer[0], s.input.outer[0], elements * s.outer[1])) {
    return 0;
  }
  const uint64_t tasks = uint64_t{(y.output - 1) / kDepthwiseRows + 1} * (x.output / kDepthwiseVector);
  uint32_t best = 0;
  double most = 0;  // of threads that have something to do
  for (uint32_t count = 1; count == 1 || count * bytes <= kEnoughBytes; ++count) {
    if (count * bytes % 16 != 0) continue;
    const uint64_t turns = (count * tasks + kTileThreads - 1) / kTileThreads;
    const double share = static_cast<double>(count * tasks) / static_cast<double>(turns * kTileThreads);
    if (share < most - 0.02) continue;  // more at a time are better
    most = std::max(most, share);
    best = count;
  }
  return best;
}

// Outputs of a thread in a row, of each of kDepthwiseVector groups.
inline constexpr uint32_t kDepthwisePair = 2;

// 3x3 taps and groups that are neighbours, in whole vectors.
inline bool HasDepthwiseVectors(const ConvolutionShape& s) {
  const ConvolutionWindow &x = s.windows[kMaxSpatial - 1], &y = s.windows[kMaxSpatial - 2];
  if (!HasThreeTaps(s) || y.taps != 3 || y.dilation != 1 || y.stride != x.stride || s.output_channels != 1 ||
      s.outer[1] == 1 || s.input.outer[1] != 1 || s.output.outer[1] != 1) {
    return false;
  }
  uint64_t elements = s.outer[1] | s.input.offset | s.output.offset;
  const auto add = [&](uint64_t size, uint64_t stride) {
    if (size > 1) elements |= stride;
  };
  add(s.outer[0], s.input.outer[0]);
  add(s.outer[0], s.output.outer[0]);
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    add(s.windows[d].input, s.input.spatial[d]);
    add(s.windows[d].output, s.output.spatial[d]);
  }
  return elements % kDepthwiseVector == 0 && s.Elements() < uint64_t{1} << 32;
}

// Where there are few vectors of groups, a thread has those of one row.
enum class DepthwiseWay : uint8_t { kAny, kThreeTaps, kRows, kColumns, kPlanes, kVectors, kFewVectors };

using ConvolutionFunction = void (*)(ConvolutionParameters);

// `stride`: 1 or 2, but for kAny.
ConvolutionFunction FindDepthwise(DepthwiseWay way, bool half, uint32_t stride);

}  // namespace anydml
