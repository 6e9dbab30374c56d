// x * Scale + Bias for one element; problem.h has the rules. What is done per element is
// constexpr: nvcc compiles such functions for a device as well.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "schema/operator_desc.h"

namespace anydml {

// Whether `value` is a whole number that INT64 or UINT64 can hold.
inline bool IsIntegral(float value) {
  return value >= -0x1p63f && value < 0x1p64f && std::trunc(value) == value;
}

// The number modulo 2^64.
inline uint64_t Modulo64(float integral) {
  return integral < 0 ? static_cast<uint64_t>(static_cast<int64_t>(integral))
                      : static_cast<uint64_t>(integral);
}

template <typename T>
constexpr T SaturateToward0(double value) {
  static_assert(std::is_integral_v<T>);
  // Both bounds are exact in double: -2^n and 2^n.
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double kHigh = 2.0 * static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  if (value != value) return 0;
  if (value <= kLow) return std::numeric_limits<T>::min();
  if (value >= kHigh) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// Which NaN an operation on NaNs gives depends on the machine and on the order in
// which a compiler puts the operands: make it one and the same.
template <typename T>
constexpr T OneNan(T value) {
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  return value != value ? std::numeric_limits<T>::quiet_NaN() : value;
}

constexpr float ApplyScaleBias(float x, ScaleBias s) {
  const float product = x * s.scale;
  return OneNan(product + s.bias);
}

constexpr double ApplyScaleBias(double x, ScaleBias s) {
  const double product = x * s.scale;
  return OneNan(product + s.bias);
}

constexpr Half ApplyScaleBias(Half x, ScaleBias s) { return ToHalf(ApplyScaleBias(ToFloat(x), s)); }

// Which of the two rules holds for integers does not depend on the element.
template <typename T>
constexpr T ApplyScaleBiasExact(T x, uint64_t scale, uint64_t bias) {
  return static_cast<T>(static_cast<uint64_t>(x) * scale + bias);
}
template <typename T>
constexpr T ApplyScaleBiasRounded(T x, ScaleBias s) {
  return SaturateToward0<T>(ApplyScaleBias(static_cast<double>(x), s));
}

}  // namespace anydml
