// Linear resampling to twice the rows and columns, with pixel centres as places: every weight is 1/4 or 3/4,
// except for the first and last pixels, which equal elements.
#pragma once

#include <type_traits>

#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/float_elements.cuh"
#include "ops/resample/cuda/doubled.cuh"

namespace anydml {

inline constexpr uint32_t kDoubledThreads = 256;

// What a thread reads of a row: its 8 bytes and an element on either side.
template <typename T>
struct DoubledElements {
  static constexpr uint32_t kMiddle = 8 / sizeof(T), kPixels = 2 * kMiddle;
  uint2 middle;
  T left, right;

  // At the ends of a row there is no element on one side, and it is not used.
  __device__ DoubledElements(const std::byte* row, bool is_first, bool is_last)
      : middle(*reinterpret_cast<const uint2*>(row)) {
    const T* const elements = reinterpret_cast<const T*>(row);
    left = elements[is_first ? 0 : -1];
    right = elements[is_last ? 0 : static_cast<int32_t>(kMiddle)];
  }

  __device__ static float Number(float x) { return x; }
  __device__ static float Number(__half x) { return __half2float(x); }

  // The pixels of a row. Products of FLOAT16 numbers with the weights are exact, so only the sum is rounded.
  __device__ void Mix(bool is_first, bool is_last, float (&pixels)[kPixels]) const {
    T elements[kMiddle];
    memcpy(elements, &middle, sizeof(middle));
    float x[kMiddle + 2], quarter[kMiddle + 2];
    x[0] = Number(left);
    x[kMiddle + 1] = Number(right);
#pragma unroll
    for (uint32_t i = 0; i < kMiddle; ++i) x[i + 1] = Number(elements[i]);
#pragma unroll
    for (uint32_t i = 0; i < kMiddle + 2; ++i) quarter[i] = x[i] * 0.25f;
#pragma unroll
    for (uint32_t i = 0; i < kMiddle; ++i) {
      if constexpr (sizeof(T) == 2) {
        pixels[2 * i] = __fmaf_rn(x[i + 1], 0.75f, quarter[i]);
        pixels[2 * i + 1] = __fmaf_rn(x[i + 1], 0.75f, quarter[i + 2]);
      } else {
        const float most = x[i + 1] * 0.75f;
        pixels[2 * i] = quarter[i] + most;
        pixels[2 * i + 1] = most + quarter[i + 2];
      }
    }
    if (is_first) pixels[0] = x[1];
    if (is_last) pixels[kPixels - 1] = x[kMiddle];
  }
};

template <uint32_t kPixels>
__device__ void StorePixels(std::byte* to, const float (&x)[kPixels]) {
  if constexpr (kPixels == 4) {
    *reinterpret_cast<float4*>(to) = {OneNan(x[0]), OneNan(x[1]), OneNan(x[2]), OneNan(x[3])};
  } else {
    using element_cuda::FloatsToHalves;
    *reinterpret_cast<uint4*>(to) = {FloatsToHalves(x[0], x[1]), FloatsToHalves(x[2], x[3]),
                                     FloatsToHalves(x[4], x[5]), FloatsToHalves(x[6], x[7])};
  }
}

template <typename T>
__global__ void __launch_bounds__(kDoubledThreads) ResampleDoubled(const __grid_constant__ DoubledImages p) {
  using Elements = DoubledElements<T>;
  constexpr uint32_t kPixels = Elements::kPixels;
  const uint64_t number = uint64_t{blockIdx.x} * kDoubledThreads + threadIdx.x;
  if (number >= p.threads) return;
  const DoubledImages::Part part = p.PartOf(static_cast<uint32_t>(number));
  const bool is_first = part.group == 0, is_last = part.group + 1 == p.groups.divisor();
  const auto read = [&](uint32_t row) {
    return Elements(part.source + min(row, p.rows - 1) * p.source_stride, is_first, is_last);
  };
  // Two rows are in flight while one is used.
  const Elements above = read(part.first == 0 ? 0 : part.first - 1), here = read(part.first);
  Elements next = read(part.first + 1), later = read(part.first + 2);
  // A quarter of the rows above and here.
  float above_quarter[kPixels], pixels[kPixels], quarter[kPixels];
  above.Mix(is_first, is_last, above_quarter);
  here.Mix(is_first, is_last, pixels);
#pragma unroll
  for (uint32_t j = 0; j < kPixels; ++j) {
    above_quarter[j] = above_quarter[j] * 0.25f;
    quarter[j] = pixels[j] * 0.25f;
  }
  std::byte* to = part.target + 2 * part.first * p.target_stride;
  for (uint32_t row = part.first; row < part.end; ++row, to += 2 * p.target_stride) {
    float below[kPixels], upper[kPixels], lower[kPixels];
    next.Mix(is_first, is_last, below);
    next = later;
    later = read(row + 3);
    const bool is_top = row == 0, is_bottom = row + 1 == p.rows;
#pragma unroll
    for (uint32_t j = 0; j < kPixels; ++j) {
      const float most = pixels[j] * 0.75f, below_quarter = below[j] * 0.25f;
      upper[j] = is_top ? pixels[j] : above_quarter[j] + most;
      lower[j] = is_bottom ? pixels[j] : most + below_quarter;
      above_quarter[j] = quarter[j];
      quarter[j] = below_quarter;
      pixels[j] = below[j];
    }
    StorePixels(to, upper);
    StorePixels(to + p.target_stride, lower);
  }
}

inline bool IsDoubledLinearly(const ResampleAxis& axis) {
  return IsDoubledAxis(axis, [&](uint32_t i, const Taps& taps) {
    if (i == 0 || i + 1 == axis.to) return taps.first == i / 2 && taps.second == 0;
    return taps.first == (i - 1) / 2 && taps.second == (i % 2 == 1 ? 0.25f : 0.75f);
  });
}

}  // namespace anydml
