// Depthwise convolutions of 3x3 taps with stride 1. A thread has a vector of columns and walks down the rows
// of a band; its neighbours to the left and right come from adjacent lanes. Loads of the next rows are in
// flight while others are summed.
#pragma once

#include "ops/convolution/cuda/depthwise/depthwise_rows.cuh"

namespace anydml {

// Rows that are loaded at a time (a band and two more rows make whole turns), and blocks per multiprocessor,
// whose registers hold these rows.
template <typename T>
struct DepthwiseAhead;
template <>
struct DepthwiseAhead<__half> {
  static constexpr uint32_t kRows = 8, kBlocks = 3;
};
template <>
struct DepthwiseAhead<float> {
  static constexpr uint32_t kRows = 3, kBlocks = 3;
};

template <typename T>
struct alignas(kDepthwiseVector * sizeof(T)) PackedVector {
  T x[kDepthwiseVector];
};

// A thread's sums while it walks down a vector of columns; a row's vectors belong to adjacent lanes.
class ColumnSums {
 public:
  __device__ ColumnSums(bool is_left, bool is_right) : is_left_(is_left), is_right_(is_right) {}

  template <typename T>
  __device__ __forceinline__ void LoadWeights(const ConvolutionParameters& p, uint32_t image, uint32_t group,
                                              uint32_t channel) {
    const DeviceShape& s = p.shape;
    const T* const filter =
        static_cast<const T*>(p.filter) + s.filter.Matrix(image, group) + channel * s.filter.output_channel;
#pragma unroll
    for (uint32_t t = 0; t < 9; ++t) {
      const uint64_t at =
          t / 3 * s.filter.spatial[kMaxSpatial - 2] + t % 3 * s.filter.spatial[kMaxSpatial - 1];
      weights_[t / 3][t % 3] = static_cast<float>(filter[static_cast<int64_t>(at)]);
    }
    if (p.bias == nullptr) return;
    const uint64_t at = (uint64_t{group} * s.output_channels + channel) * p.bias_stride;
    bias_ = static_cast<float>(static_cast<const T*>(p.bias)[at]);
  }

  // Adds the next row of the input; returns the complete sums of the outputs in the row above. All lanes of a
  // warp must call it.
  template <typename T>
  __device__ __forceinline__ NumberVector Add(const PackedVector<T>& row) {
    constexpr uint32_t kAll = 0xFFFFFFFF;
    float x[kDepthwiseVector + 2];
#pragma unroll
    for (uint32_t e = 0; e < kDepthwiseVector; ++e) x[1 + e] = static_cast<float>(row.x[e]);
    const float left = __shfl_up_sync(kAll, x[kDepthwiseVector], 1), right = __shfl_down_sync(kAll, x[1], 1);
    x[0] = is_left_ ? 0 : left;
    x[kDepthwiseVector + 1] = is_right_ ? 0 : right;
    NumberVector below = {};
#pragma unroll
    for (uint32_t e = 0; e < kDepthwiseVector; ++e) {
#pragma unroll
      for (uint32_t t = 0; t < 3; ++t) {
        above_.x[e] = __fmaf_rn(x[e + t], weights_[2][t], above_.x[e]);
        here_.x[e] = __fmaf_rn(x[e + t], weights_[1][t], here_.x[e]);
        below.x[e] = __fmaf_rn(x[e + t], weights_[0][t], below.x[e]);
      }
    }
    const NumberVector result = above_;
    above_ = here_;
    here_ = below;
    return result;
  }

  template <typename T>
  __device__ __forceinline__ void Store(const ConvolutionParameters& p, NumberVector sums, T* to) const {
#pragma unroll
    for (float& sum : sums.x) sum += bias_;
    if (p.limits.Any()) {
#pragma unroll
      for (float& sum : sums.x) sum = p.limits.Of(sum);
    }
    StoreVector(sums, to);
  }

 private:
  bool is_left_, is_right_;
  float weights_[3][3], bias_ = 0;
  NumberVector above_ = {}, here_ = {};  // incomplete sums
};

template <typename T>
__global__ void __launch_bounds__(kTileThreads, DepthwiseAhead<T>::kBlocks)
    DepthwiseColumns(const __grid_constant__ ConvolutionParameters p) {
  constexpr uint32_t kAhead = DepthwiseAhead<T>::kRows, kY = kMaxSpatial - 2, kX = kMaxSpatial - 1;
  WaitForPrevious();
  LetNextStart();
  const DeviceShape& s = p.shape;
  const ConvolutionWindow &wy = s.windows[kY], &wx = s.windows[kX];
  uint32_t run, band, channel, group;
  const uint32_t line = p.runs.Divide(threadIdx.x % 32, &run);
  const uint64_t number = (uint64_t{blockIdx.x} * kTileThreads + threadIdx.x) / 32 * p.warp_lines + line;
  const bool works =
      line < p.warp_lines && number < p.all_lines;  // lanes without work still take part in exchanges
  const uint32_t plane = p.bands.Divide(works ? static_cast<uint32_t>(number) : 0, &band);
  const uint32_t image = p.groups.Divide(p.channels.Divide(plane, &channel), &group);
  ColumnSums sums(run == 0, run + 1 == p.runs.divisor());
  sums.LoadWeights<T>(p, image, group, channel);

  const uint32_t first = band * p.band_rows, outputs = min(wy.output - first, p.band_rows);
  const int32_t top = static_cast<int32_t>(first) - static_cast<int32_t>(wy.start_padding);
  const bool reads = works && run * kDepthwiseVector < wx.input;
  const T* const input =
      static_cast<const T*>(p.input) + s.input.Matrix(image, group) + run * kDepthwiseVector;
  const auto read = [&](uint32_t j) {
    const int32_t row = top + static_cast<int32_t>(j);
    PackedVector<T> vector = {};
    if (reads && j < outputs + 2 && row >= 0 && row < static_cast<int32_t>(wy.input)) {
      vector =
          *reinterpret_cast<const PackedVector<T>*>(input + static_cast<uint32_t>(row) * s.input.spatial[kY]);
    }
    return vector;
  };
  const uint64_t target = s.output.Matrix(image, group) + channel * s.output.channel + run * kDepthwiseVector;

  PackedVector<T> next[kAhead];
#pragma unroll
  for (uint32_t i = 0; i < kAhead; ++i) next[i] = read(i);
  for (uint32_t begin = 0; begin < outputs + 2; begin += kAhead) {
    PackedVector<T> now[kAhead];
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      now[i] = next[i];
      next[i] = read(begin + kAhead + i);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      const NumberVector result = sums.Add(now[i]);
      const uint32_t done = begin + i;  // rows of the input
      if (!works || done < 2 || done >= outputs + 2) continue;
      const uint64_t at = target + (first + done - 2) * s.output.spatial[kY];
      if (p.half_output) {
        sums.Store(p, result, static_cast<__half*>(p.output) + at);
      } else {
        sums.Store(p, result, static_cast<float*>(p.output) + at);
      }
    }
  }
}

}  // namespace anydml
