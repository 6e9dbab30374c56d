// Large angles: the remainder of any float by a fraction of a turn, exact enough for every result.
#pragma once

#include <limits>

#include "ops/element/lane.h"

namespace anydml::lane {

// Below this, three words of pi do.
inline constexpr float kLargeAngle = 0x1p17f;

// x / (2 pi) without its whole part, in units of 2^-64, for finite x >= kLargeAngle.
ANYDML_LANE uint64_t TurnFraction(float x) {
  // 32 zeros, then 1 / (2 pi).
  constexpr uint32_t kInverse[] = {0,          0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770,
                                   0x36D8A566, 0x4F10E410, 0x7F9458EA, 0xF7AEF158};
  const uint32_t bits = detail::Cast<uint32_t>(x);
  const uint32_t mantissa = (bits & 0x7FFFFFu) | 0x800000u;
  // x = mantissa 2^scale. What is left of the point in 2^scale / (2 pi) only adds whole turns.
  const int32_t scale = static_cast<int32_t>(bits >> 23) - 127 - 23;
  const uint32_t start = static_cast<uint32_t>(scale + 32);
  const uint32_t* const words = kInverse + start / 32;
  const uint32_t shift = start % 32;
  const auto word = [&](int i) {
    return static_cast<uint32_t>(((uint64_t{words[i]} << 32 | words[i + 1]) << shift) >> 32);
  };
  const uint64_t low = uint64_t{mantissa} * word(2);
  const uint64_t middle = uint64_t{mantissa} * word(1) + (low >> 32);
  return (uint64_t{mantissa * word(0)} << 32) + middle;
}

// The remainder, in radians, of |x| plus `offset` (in units of 2^-64 turns) by 2^(kLog2 - 64) turns, and in
// `count` how often it fits, modulo 2^(64 - kLog2).
template <int kLog2>
ANYDML_LANE float ReduceLargeAngle(float x, uint64_t offset, int32_t& count) {
  count = 0;
  if (!(x < std::numeric_limits<float>::infinity())) return std::numeric_limits<float>::quiet_NaN();
  const uint64_t turn = TurnFraction(x) + offset;
  const uint64_t n = (turn + (uint64_t{1} << (kLog2 - 1))) >> kLog2;
  count = static_cast<int32_t>(n);
  const auto rest = static_cast<int64_t>(turn - (n << kLog2));
  return static_cast<float>(Mul(static_cast<double>(rest), 0x1.921fb54442d18p-62));  // 2 pi 2^-64
}

}  // namespace anydml::lane
