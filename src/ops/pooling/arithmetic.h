// Arithmetic of the kernels of all backends; the references have their own.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "ops/numbers/math/lane.h"

namespace anydml::pooling {

// ---- Maxima are taken of keys: numbers that are ordered as elements are. NaNs have one key, the largest.

template <typename T>
struct KeyType {
  using Type = T;
};
template <>
struct KeyType<float> {
  using Type = int32_t;
};
template <>
struct KeyType<Half> {
  using Type = int16_t;
};
template <typename T>
using Key = typename KeyType<T>::Type;

template <typename T>
ANYDML_LANE Key<T> KeyOf(T x) {
  if constexpr (std::is_same_v<T, float>) {
    const auto bits = lane::detail::Cast<int32_t>(x);
    const int32_t key = bits ^ ((bits >> 31) & 0x7FFFFFFF);
    return x == x ? key : 0x7FFFFFFF;  // NOLINT(misc-redundant-expression)
  } else if constexpr (std::is_same_v<T, Half>) {
    const auto bits = static_cast<int16_t>(x.bits);
    if ((x.bits & 0x7FFFu) > 0x7C00u) return 0x7FFF;
    return static_cast<int16_t>(bits ^ ((bits >> 15) & 0x7FFF));
  } else {
    return x;
  }
}

// The result of a window without a valid tap.
template <typename T>
constexpr T Lowest() {
  if constexpr (std::is_same_v<T, Half>) {
    return Half{0xFC00};
  } else if constexpr (std::is_same_v<T, float>) {
    return -std::numeric_limits<float>::infinity();
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

// ---- Sums

ANYDML_LANE float WithOneNan(float x) {
  return x == x ? x : lane::kNan;  // NOLINT(misc-redundant-expression)
}

// |x|^p, in double precision so that it is the same everywhere.
ANYDML_LANE float LpTerm(float x, uint32_t p) {
  const float magnitude = x < 0 ? -x : x;
  if (p == 1) return magnitude;
  if (p == 2) return magnitude * magnitude;
  double power = 1, square = magnitude;
  while (true) {
    if (p % 2 != 0) power *= square;
    p /= 2;
    if (p == 0) return static_cast<float>(power);
    square *= square;
  }
}

ANYDML_LANE float LpRoot(float sum, uint32_t p) {
  if (p == 1) return sum;
  if (p == 2) return sqrtf(sum);
  return static_cast<float>(pow(double{sum}, 1.0 / p));
}

struct Quantization {
  float input_scale;
  float output_scale;
  float output_zero_point;
  float lowest;  // of the output's type
};

// The mean of `taps` numbers, quantised to an integer of the output's type.
ANYDML_LANE float QuantizedMean(float sum, float taps, const Quantization& q) {
  const float mean = taps == 0 ? 0 : sum * q.input_scale / taps;
  const float quotient = mean / q.output_scale;
  const float whole = quotient == quotient ? rintf(quotient) : 0;  // NOLINT(misc-redundant-expression)
  const float result = whole + q.output_zero_point, highest = q.lowest + 255;
  return result < q.lowest ? q.lowest : result > highest ? highest : result;
}

}  // namespace anydml::pooling
