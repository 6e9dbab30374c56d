// What the kernels for CUDA share: the taps of windows, and elements as numbers.
#pragma once

#include "ops/device/cuda/convert.cuh"
#include "ops/pooling/arithmetic.h"
#include "ops/pooling/plan.h"

namespace anydml::pooling {

// The taps of a window that are inside the input.
struct Taps {
  WindowRange range[kSpatialRank];
  int64_t first[kSpatialRank];  // position of tap 0
};

__device__ inline Taps TapsOf(const DeviceWindows& windows, const WindowPlace& at) {
  Taps taps;
  const uint32_t window[] = {at.d, at.h, at.w};
#pragma unroll
  for (uint32_t d = 0; d < kSpatialRank; ++d) {
    taps.range[d] = ValidTaps(windows.axes[d], window[d]);
    taps.first[d] = PlaceOf(windows.axes[d], window[d], 0);
  }
  return taps;
}

__device__ inline uint64_t TapPlace(const DeviceWindows& windows, const Taps& taps, uint32_t d, uint32_t k) {
  return static_cast<uint64_t>(taps.first[d] + static_cast<int64_t>(uint64_t{k} * windows.axes[d].dilation));
}

// The divisor of an average: 0 without a valid tap.
__device__ inline float DivisorOf(const DeviceWindows& windows, const Taps& taps, const WindowPlace& at,
                                  bool include_padding) {
  const uint32_t window[] = {at.d, at.h, at.w};
  uint64_t divisor = 1;
  bool any = true;
#pragma unroll
  for (uint32_t d = 0; d < kSpatialRank; ++d) {
    any = any && taps.range[d].count() > 0;
    divisor *= include_padding ? TapsWithPadding(windows.axes[d], window[d]) : taps.range[d].count();
  }
  return any ? static_cast<float>(divisor) : 0;
}

// Maxima and averages of floating-point numbers, without indices.
inline bool IsPlainFloat(const PoolingProblem& problem) {
  const bool is_float = problem.input.type == DataType::kFloat32 || problem.input.type == DataType::kFloat16;
  const bool known =
      problem.function == PoolingFunction::kMax || problem.function == PoolingFunction::kAverage;
  return is_float && known && !problem.indices.present() && problem.output.present();
}

// Whether the elements of the input, or of the windows, are contiguous in row-major order.
inline bool IsPacked(const PoolingTensor& tensor, const PoolingShape& shape, bool windows) {
  uint64_t stride = 1;
  for (uint32_t d = kPoolingRank; d-- > 0;) {
    const uint64_t size = d == 0    ? shape.batch
                          : d == 1  ? shape.channels
                          : windows ? shape.axes[d - 2].windows
                                    : shape.axes[d - 2].input;
    if (size > 1 && tensor.strides[d] != stride) return false;
    stride *= size;
  }
  return true;
}

// NaN if either is; +0 is larger than -0.
__device__ inline float LargerOf(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

__device__ inline float NumberOf(float x) { return x; }
__device__ inline float NumberOf(Half x) { return element_cuda::HalfToFloat(x.bits); }
__device__ inline float NumberOf(int8_t x) { return static_cast<float>(x); }
__device__ inline float NumberOf(uint8_t x) { return static_cast<float>(x); }

// Rounded; NaNs are canonical.
template <typename T>
__device__ T ElementOf(float x) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half{static_cast<uint16_t>(element_cuda::FloatsToHalves(x, x))};
  } else {
    return static_cast<T>(WithOneNan(x));
  }
}

template <typename T>
__device__ void StoreNumber(void* data, uint64_t element, float x) {
  static_cast<T*>(data)[element] = ElementOf<T>(x);
}

}  // namespace anydml::pooling
