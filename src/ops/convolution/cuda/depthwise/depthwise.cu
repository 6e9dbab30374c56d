#include "ops/convolution/cuda/depthwise/depthwise.cuh"

#include "ops/convolution/cuda/depthwise/depthwise_columns.cuh"
#include "ops/convolution/cuda/depthwise/depthwise_planes.cuh"
#include "ops/convolution/cuda/depthwise/depthwise_ring.cuh"
#include "ops/convolution/cuda/depthwise/depthwise_tiles.cuh"
#include "ops/convolution/cuda/depthwise/depthwise_warps.cuh"

namespace anydml {
namespace {

// For any window.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) Depthwise(const __grid_constant__ ConvolutionParameters p) {
  WaitForPrevious();
  LetNextStart();
  const DeviceShape& s = p.shape;
  const uint64_t elements = uint64_t{s.matrices} * s.output_channels * s.positions;
  for (uint64_t i = uint64_t{blockIdx.x} * kTileThreads + threadIdx.x; i < elements;
       i += uint64_t{gridDim.x} * kTileThreads) {
    const auto row = static_cast<uint32_t>(i / s.positions),
               position = static_cast<uint32_t>(i % s.positions);
    const uint32_t matrix = row / s.output_channels, channel = row % s.output_channels;
    const DeviceWindow window(s, matrix, position);
    const uint64_t filter = MatrixOf(s, s.filter, matrix);
    float sum = 0;
    for (uint32_t step = 0; step < s.steps; ++step) {
      uint64_t at;
      if (!window.Find(step, &at)) continue;
      sum = __fmaf_rn(LoadNumber(p.input, at, T()),
                      LoadNumber(p.filter, FilterOffset(s, filter, channel, step), T()), sum);
    }
    FinishSum<T>(p, matrix, channel, position, sum);
  }
}

// Each element that is read of a row serves all of a thread's outputs.
template <typename T, int32_t kStride>
__global__ void __launch_bounds__(kTileThreads)
    DepthwiseThree(const __grid_constant__ ConvolutionParameters p) {
  WaitForPrevious();
  LetNextStart();
  constexpr int32_t kRead = (kDepthwiseRun - 1) * kStride + 3;
  const DeviceShape& s = p.shape;
  const ConvolutionWindow &wy = s.windows[kMaxSpatial - 2], &wx = s.windows[kMaxSpatial - 1];
  const uint64_t runs = uint64_t{s.matrices} * s.output_channels * wy.output * p.runs.divisor();
  for (uint64_t i = uint64_t{blockIdx.x} * kTileThreads + threadIdx.x; i < runs;
       i += uint64_t{gridDim.x} * kTileThreads) {
    uint32_t x, y;
    const uint32_t line = p.runs.Divide(static_cast<uint32_t>(i), &x);
    const uint32_t plane = s.outputs[kMaxSpatial - 2].Divide(line, &y);
    x *= kDepthwiseRun;
    const uint32_t matrix = plane / s.output_channels, channel = plane % s.output_channels;
    const uint64_t input = MatrixOf(s, s.input, matrix);
    uint64_t filter = MatrixOf(s, s.filter, matrix) + channel * s.filter.output_channel;
    const int32_t first = static_cast<int32_t>(x) * kStride - static_cast<int32_t>(wx.start_padding);
    float sums[kDepthwiseRun] = {};
    for (uint32_t tap = 0; tap < wy.taps; ++tap, filter += s.filter.spatial[kMaxSpatial - 2]) {
      const int32_t row =
          static_cast<int32_t>(y * wy.stride + tap * wy.dilation) - static_cast<int32_t>(wy.start_padding);
      if (row < 0 || row >= static_cast<int32_t>(wy.input)) continue;
      const uint64_t begin = input + static_cast<uint32_t>(row) * s.input.spatial[kMaxSpatial - 2];
      float read[kRead];
#pragma unroll
      for (int32_t j = 0; j < kRead; ++j) {
        const int32_t column = first + j;
        const bool inside = column >= 0 && column < static_cast<int32_t>(wx.input);
        read[j] =
            inside ? LoadNumber(p.input,
                                begin + static_cast<uint32_t>(column) * s.input.spatial[kMaxSpatial - 1], T())
                   : 0.0f;
      }
#pragma unroll
      for (int32_t t = 0; t < 3; ++t) {
        const float weight = LoadNumber(p.filter, filter + t * s.filter.spatial[kMaxSpatial - 1], T());
#pragma unroll
        for (uint32_t o = 0; o < kDepthwiseRun; ++o)
          sums[o] = __fmaf_rn(read[o * kStride + t], weight, sums[o]);
      }
    }
    float bias = 0;
    if (p.bias != nullptr) {
      bias =
          LoadNumber(p.bias, (uint64_t{matrix % s.inner} * s.output_channels + channel) * p.bias_stride, T());
    }
    const uint64_t target =
        MatrixOf(s, s.output, matrix) + channel * s.output.channel + y * s.output.spatial[kMaxSpatial - 2];
#pragma unroll
    for (uint32_t o = 0; o < kDepthwiseRun; ++o) {
      if (x + o >= wx.output) continue;
      const uint64_t at = target + (x + o) * s.output.spatial[kMaxSpatial - 1];
      const float sum = p.limits.Of(sums[o] + bias);
      if (p.half_output) {
        static_cast<__half*>(p.output)[at] = __float2half_rn(sum);
      } else {
        static_cast<float*>(p.output)[at] = sum;
      }
    }
  }
}

template <typename T>
ConvolutionFunction Find(DepthwiseWay way, uint32_t stride) {
  switch (way) {
    case DepthwiseWay::kAny:
      return Depthwise<T>;
    case DepthwiseWay::kThreeTaps:
      return stride == 1 ? DepthwiseThree<T, 1> : DepthwiseThree<T, 2>;
    case DepthwiseWay::kRows:
      return stride == 1 ? DepthwiseRows<T, 1> : DepthwiseRows<T, 2>;
    case DepthwiseWay::kColumns:
      return DepthwiseColumns<T>;
    case DepthwiseWay::kWarps:
      return DepthwiseWarps<T, kDepthwiseWarpsAhead>;
    case DepthwiseWay::kTiles:
      return DepthwiseTiles<T, UsualDepthwiseTile<T>>;
    case DepthwiseWay::kRing:
      return DepthwiseRing;
    case DepthwiseWay::kPlanes:
      return stride == 1 ? DepthwisePlanes<T, 1> : DepthwisePlanes<T, 2>;
    case DepthwiseWay::kVectors:
      return stride == 1 ? DepthwiseVectors<T, 1, kDepthwiseRows> : DepthwiseVectors<T, 2, kDepthwiseRows>;
    case DepthwiseWay::kFewVectors:
      return stride == 1 ? DepthwiseVectors<T, 1, 1> : DepthwiseVectors<T, 2, 1>;
  }
  return nullptr;
}

}  // namespace

ConvolutionFunction FindDepthwise(DepthwiseWay way, bool half, uint32_t stride) {
  return half ? Find<__half>(way, stride) : Find<float>(way, stride);
}

}  // namespace anydml
