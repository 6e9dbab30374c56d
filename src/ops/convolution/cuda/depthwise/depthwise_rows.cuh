// Depthwise convolutions of 3x3 taps in vectors of four numbers. A thread has one vector in each of several
// consecutive rows, so that each loaded row serves three of them.
#pragma once

#include "ops/convolution/cuda/depthwise/depthwise.cuh"

namespace anydml {

struct NumberVector {
  float x[kDepthwiseVector];
};

__device__ __forceinline__ NumberVector LoadVector(const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  return {v.x, v.y, v.z, v.w};
}
__device__ __forceinline__ NumberVector LoadVector(const __half* from) {
  const uint2 v = *reinterpret_cast<const uint2*>(from);
  const float2 a = __half22float2(*reinterpret_cast<const __half2*>(&v.x)),
               b = __half22float2(*reinterpret_cast<const __half2*>(&v.y));
  return {a.x, a.y, b.x, b.y};
}
__device__ __forceinline__ void StoreVector(const NumberVector& v, float* to) {
  *reinterpret_cast<float4*>(to) = {v.x[0], v.x[1], v.x[2], v.x[3]};
}
__device__ __forceinline__ void StoreVector(const NumberVector& v, __half* to) {
  const __half2 a = __floats2half2_rn(v.x[0], v.x[1]), b = __floats2half2_rn(v.x[2], v.x[3]);
  *reinterpret_cast<uint2*>(to) = {*reinterpret_cast<const uint32_t*>(&a),
                                   *reinterpret_cast<const uint32_t*>(&b)};
}

// Loads the columns [first - 1, first + kStride * kDepthwiseVector) that the outputs see; with stride 1 also
// one more, for which `read` has room.
template <typename T, uint32_t kStride, uint32_t kRead>
__device__ __forceinline__ void ReadRow(const T* row, uint32_t first, uint32_t columns,
                                        float (&read)[kRead]) {
  read[0] = first > 0 && first - 1 < columns ? static_cast<float>(row[first - 1]) : 0.0f;
#pragma unroll
  for (uint32_t v = 0; v < kStride; ++v) {
    NumberVector vector = {};
    const uint32_t at = first + v * kDepthwiseVector;
    if (at < columns) vector = LoadVector(row + at);
#pragma unroll
    for (uint32_t i = 0; i < kDepthwiseVector; ++i) read[1 + v * kDepthwiseVector + i] = vector.x[i];
  }
  if constexpr (kStride == 1) {
    const uint32_t at = first + kDepthwiseVector;
    read[1 + kDepthwiseVector] = at < columns ? static_cast<float>(row[at]) : 0.0f;
  }
}

// A thread's outputs: vector `run` of the rows of band `band`. `input`: the channel's first row.
template <typename T, uint32_t kStride>
__device__ __forceinline__ void DepthwiseBand(const ConvolutionParameters& p, const T* input,
                                              uint64_t row_stride, uint32_t image, uint32_t group,
                                              uint32_t channel, uint32_t band, uint32_t run) {
  constexpr uint32_t kRead = kStride == 1 ? kDepthwiseVector + 2 : 2 * kDepthwiseVector + 1;
  constexpr uint32_t kInputRows = (kDepthwiseRows - 1) * kStride + 3;
  const DeviceShape& s = p.shape;
  const ConvolutionWindow &wy = s.windows[kMaxSpatial - 2], &wx = s.windows[kMaxSpatial - 1];
  const uint32_t first_row = band * kDepthwiseRows;
  float weights[3][3];
  const T* const filter =
      static_cast<const T*>(p.filter) + s.filter.Matrix(image, group) + channel * s.filter.output_channel;
#pragma unroll
  for (uint32_t y = 0; y < 3; ++y) {
#pragma unroll
    for (uint32_t x = 0; x < 3; ++x) {
      weights[y][x] = static_cast<float>(filter[static_cast<int64_t>(y * s.filter.spatial[kMaxSpatial - 2] +
                                                                     x * s.filter.spatial[kMaxSpatial - 1])]);
    }
  }
  const int32_t top = static_cast<int32_t>(first_row * kStride) - static_cast<int32_t>(wy.start_padding);
  float sums[kDepthwiseRows][kDepthwiseVector] = {};
#pragma unroll
  for (uint32_t j = 0; j < kInputRows; ++j) {
    const int32_t row = top + static_cast<int32_t>(j);
    float read[kRead] = {};
    if (row >= 0 && row < static_cast<int32_t>(wy.input)) {
      ReadRow<T, kStride>(input + static_cast<uint32_t>(row) * row_stride, run * kDepthwiseVector * kStride,
                          wx.input, read);
    }
#pragma unroll
    for (uint32_t tap = 0; tap < 3; ++tap) {
      if (j < tap || (j - tap) % kStride != 0 || (j - tap) / kStride >= kDepthwiseRows) continue;
#pragma unroll
      for (uint32_t i = 0; i < kDepthwiseVector; ++i) {
        float& sum = sums[(j - tap) / kStride][i];
#pragma unroll
        for (uint32_t x = 0; x < 3; ++x) sum = __fmaf_rn(read[i * kStride + x], weights[tap][x], sum);
      }
    }
  }
  float bias = 0;
  if (p.bias != nullptr) {
    const uint64_t at = (uint64_t{group} * s.output_channels + channel) * p.bias_stride;
    bias = static_cast<float>(static_cast<const T*>(p.bias)[at]);
  }
  const uint64_t target = s.output.Matrix(image, group) + channel * s.output.channel + run * kDepthwiseVector;
#pragma unroll
  for (uint32_t r = 0; r < kDepthwiseRows; ++r) {
    if (first_row + r >= wy.output) break;
    NumberVector vector;
#pragma unroll
    for (uint32_t i = 0; i < kDepthwiseVector; ++i) vector.x[i] = p.limits.Of(sums[r][i] + bias);
    const uint64_t at = target + (first_row + r) * s.output.spatial[kMaxSpatial - 2];
    if (p.half_output) {
      StoreVector(vector, static_cast<__half*>(p.output) + at);
    } else {
      StoreVector(vector, static_cast<float*>(p.output) + at);
    }
  }
}

template <typename T, uint32_t kStride>
__global__ void __launch_bounds__(kTileThreads)
    DepthwiseRows(const __grid_constant__ ConvolutionParameters p) {
  WaitForPrevious();
  LetNextStart();
  const DeviceShape& s = p.shape;
  const uint64_t number = uint64_t{blockIdx.x} * kTileThreads + threadIdx.x;
  if (number >= p.threads) return;
  uint32_t run, band, channel, group;
  const uint32_t line = p.runs.Divide(static_cast<uint32_t>(number), &run);
  const uint32_t plane = p.bands.Divide(line, &band);
  const uint32_t matrix = p.channels.Divide(plane, &channel);
  const uint32_t image = p.groups.Divide(matrix, &group);
  DepthwiseBand<T, kStride>(p, static_cast<const T*>(p.input) + s.input.Matrix(image, group),
                            s.input.spatial[kMaxSpatial - 2], image, group, channel, band, run);
}

// The same with vectors of contiguous groups: kDepthwisePair of them in each row.
template <typename T, uint32_t kStride, uint32_t kRows>
__global__ void __launch_bounds__(kTileThreads)
    DepthwiseVectors(const __grid_constant__ ConvolutionParameters p) {
  WaitForPrevious();
  LetNextStart();
  constexpr uint32_t kRead = (kDepthwisePair - 1) * kStride + 3;
  constexpr uint32_t kInputRows = (kRows - 1) * kStride + 3;
  constexpr uint32_t kY = kMaxSpatial - 2, kX = kMaxSpatial - 1;
  const DeviceShape& s = p.shape;
  const ConvolutionWindow &wy = s.windows[kY], &wx = s.windows[kX];
  const uint64_t number = uint64_t{blockIdx.x} * kTileThreads + threadIdx.x;
  if (number >= p.threads) return;
  uint32_t vector, run, band;
  uint32_t image = p.groups.Divide(static_cast<uint32_t>(number), &vector);
  image = p.runs.Divide(image, &run);
  image = p.bands.Divide(image, &band);
  const uint32_t group = vector * kDepthwiseVector, first_row = band * kRows;

  float weights[3][3][kDepthwiseVector], bias[kDepthwiseVector] = {};
  LoadFilters<T>(p, image, group, weights, bias);
  const T* const input = static_cast<const T*>(p.input) + s.input.Matrix(image, group);
  const int32_t top = static_cast<int32_t>(first_row * kStride) - static_cast<int32_t>(wy.start_padding);
  const int32_t first =
      static_cast<int32_t>(run * kDepthwisePair * kStride) - static_cast<int32_t>(wx.start_padding);
  float sums[kRows][kDepthwisePair][kDepthwiseVector] = {};
#pragma unroll
  for (uint32_t j = 0; j < kInputRows; ++j) {
    const int32_t row = top + static_cast<int32_t>(j);
    if (row < 0 || row >= static_cast<int32_t>(wy.input)) continue;
    const T* const from = input + static_cast<uint32_t>(row) * s.input.spatial[kY];
    NumberVector read[kRead];
#pragma unroll
    for (uint32_t x = 0; x < kRead; ++x) {
      const int32_t column = first + static_cast<int32_t>(x);
      const bool inside = column >= 0 && column < static_cast<int32_t>(wx.input);
      read[x] = {};
      if (inside) read[x] = LoadVector(from + static_cast<uint32_t>(column) * s.input.spatial[kX]);
    }
#pragma unroll
    for (uint32_t tap = 0; tap < 3; ++tap) {
      if (j < tap || (j - tap) % kStride != 0 || (j - tap) / kStride >= kRows) continue;
#pragma unroll
      for (uint32_t o = 0; o < kDepthwisePair; ++o) {
#pragma unroll
        for (uint32_t x = 0; x < 3; ++x) {
#pragma unroll
          for (uint32_t i = 0; i < kDepthwiseVector; ++i) {
            float& sum = sums[(j - tap) / kStride][o][i];
            sum = __fmaf_rn(read[o * kStride + x].x[i], weights[tap][x][i], sum);
          }
        }
      }
    }
  }
  const uint64_t target = s.output.Matrix(image, group);
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
#pragma unroll
    for (uint32_t o = 0; o < kDepthwisePair; ++o) {
      const uint32_t column = run * kDepthwisePair + o;
      if (first_row + r >= wy.output || column >= wx.output) continue;
      NumberVector result;
#pragma unroll
      for (uint32_t i = 0; i < kDepthwiseVector; ++i) result.x[i] = p.limits.Of(sums[r][o][i] + bias[i]);
      const uint64_t at = target + (first_row + r) * s.output.spatial[kY] + column * s.output.spatial[kX];
      if (p.half_output) {
        StoreVector(result, static_cast<__half*>(p.output) + at);
      } else {
        StoreVector(result, static_cast<float*>(p.output) + at);
      }
    }
  }
}

}  // namespace anydml
