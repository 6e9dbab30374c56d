// Saturating conversions: truncation toward zero, then clamping. For hosts and, being constexpr, for devices.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/data_type.h"

namespace anydml {

// NaN becomes 0.
template <typename T, typename Float>
constexpr T Saturate(Float value) {
  static_assert(std::is_integral_v<T> && std::is_floating_point_v<Float>);
  // Both bounds are powers of two, which Float represents exactly.
  constexpr auto kLow = static_cast<Float>(std::numeric_limits<T>::min());
  constexpr Float kHigh = Float{2} * static_cast<Float>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  if (!(value > kLow)) return value <= kLow ? std::numeric_limits<T>::min() : T{0};
  if (value >= kHigh) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// The smallest and the largest number of a 4-bit type, which C++ does not have.
template <typename Float>
constexpr int32_t SaturateTo4Bits(Float value, bool is_signed) {
  const int32_t low = is_signed ? -8 : 0;
  const int32_t high = is_signed ? 7 : 15;
  const int32_t whole = Saturate<int32_t>(value);
  return whole < low ? low : whole > high ? high : whole;
}

// The number as an integer of `type`, sign- or zero-extended to 64 bits.
template <typename Float>
constexpr uint64_t SaturatedBits(Float value, DataType type) {
  switch (type) {
    case DataType::kInt4:
      return static_cast<uint64_t>(int64_t{SaturateTo4Bits(value, true)});
    case DataType::kUInt4:
      return static_cast<uint64_t>(int64_t{SaturateTo4Bits(value, false)});
    case DataType::kInt8:
      return static_cast<uint64_t>(int64_t{Saturate<int8_t>(value)});
    case DataType::kInt16:
      return static_cast<uint64_t>(int64_t{Saturate<int16_t>(value)});
    case DataType::kInt32:
      return static_cast<uint64_t>(int64_t{Saturate<int32_t>(value)});
    case DataType::kInt64:
      return static_cast<uint64_t>(Saturate<int64_t>(value));
    case DataType::kUInt8:
      return Saturate<uint8_t>(value);
    case DataType::kUInt16:
      return Saturate<uint16_t>(value);
    case DataType::kUInt32:
      return Saturate<uint32_t>(value);
    default:
      return Saturate<uint64_t>(value);
  }
}

}  // namespace anydml
