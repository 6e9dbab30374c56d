// Elements narrower than the type in which they are computed: FLOAT16 from FLOAT64, and 4-bit integers.
#pragma once

#include <bit>
#include <cstdint>

#include "base/half.h"

namespace anydml {

constexpr Half RoundToHalf(float value) { return ToHalf(value); }

// Rounds once: the intermediate FLOAT32 is rounded to odd, so that the second rounding sees no false tie.
constexpr Half RoundToHalf(double value) {
  auto narrow = static_cast<float>(value);
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  if (narrow != narrow || static_cast<double>(narrow) == value) return ToHalf(narrow);
  auto bits = std::bit_cast<uint32_t>(narrow);
  // First toward zero.
  const bool away = value < 0 ? static_cast<double>(narrow) < value : static_cast<double>(narrow) > value;
  if (away) --bits;
  return ToHalf(std::bit_cast<float>(bits | 1));
}

// Extracts the half of a byte that contains an odd or even element.
constexpr int32_t Get4Bits(uint8_t byte, bool odd, bool is_signed) {
  const auto bits = static_cast<int32_t>(odd ? byte >> 4 : byte & 15);
  return is_signed && bits > 7 ? bits - 16 : bits;
}
constexpr uint8_t Put4Bits(uint8_t byte, bool odd, uint32_t element) {
  return static_cast<uint8_t>(odd ? (byte & 0x0Fu) | (element & 15u) << 4 : (byte & 0xF0u) | (element & 15u));
}

}  // namespace anydml
