// Cases that are too rare for vectors and are computed lane by lane: remainders of large angles and with
// large quotients.
#pragma once

#include "ops/numbers/math/lane.h"

namespace anydml::lane {

// Below this, three words of pi suffice.
inline constexpr float kLargeAngle = 0x1p17f;

// The fraction of x / (2 pi), in units of 2^-64, for finite x >= kLargeAngle.
ANYDML_LANE uint64_t TurnFraction(float x) {
  // 32 zeros, then 1 / (2 pi).
  constexpr uint32_t kInverse[] = {0,          0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770,
                                   0x36D8A566, 0x4F10E410, 0x7F9458EA, 0xF7AEF158};
  const uint32_t bits = detail::Cast<uint32_t>(x);
  const uint32_t mantissa = (bits & 0x7FFFFFu) | 0x800000u;
  // x = mantissa * 2^scale. The integer part of 2^scale / (2 pi) only adds whole turns.
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

// The remainder of x >= kLargeAngle modulo a quarter turn, in radians and two words, and the number of
// quarter turns modulo 4.
ANYDML_LANE float ReduceLargeAngle(float x, float& low, int32_t& count) {
  low = 0;
  count = 0;
  if (!(x < kInfinity)) return kNan;
  const uint64_t turn = TurnFraction(x);
  const uint64_t n = (turn + (uint64_t{1} << 61)) >> 62;
  count = static_cast<int32_t>(n);
  const auto rest = static_cast<int64_t>(turn - (n << 62));
  const double radians = Mul(static_cast<double>(rest), 0x1.921fb54442d18p-62);  // 2 pi 2^-64
  const float rounded = static_cast<float>(radians);
  low = static_cast<float>(Sub(radians, static_cast<double>(rounded)));
  return rounded;
}

// Up to this quotient, vectors compute the remainder in one step.
inline constexpr float kLargeQuotient = 0x1p22f;

// The remainder of a by b, exactly, for a >= b >= 0.
ANYDML_LANE float FmodOfPositive(float a, float b) {
  if (!(a < kInfinity) || b == 0) return kNan;
  // a = mantissa 2^exponent in units of the smallest subnormal.
  const auto exponent = [](float x) { return static_cast<int32_t>(detail::Cast<uint32_t>(x) >> 23); };
  const auto mantissa = [&](float x) {
    return uint64_t{(detail::Cast<uint32_t>(x) & 0x7FFFFFu) | (exponent(x) > 0 ? 0x800000u : 0u)};
  };
  const int32_t scale_a = exponent(a) > 0 ? exponent(a) - 1 : 0;
  const int32_t scale_b = exponent(b) > 0 ? exponent(b) - 1 : 0;
  const uint64_t divisor = mantissa(b);
  uint64_t rest = mantissa(a) % divisor;
  for (int32_t left = scale_a - scale_b; left > 0; left -= 40) {
    rest = (rest << (left < 40 ? left : 40)) % divisor;
  }
  // rest * 2^scale_b is exact: the mantissa as a float, times a power of two in two steps. The second step
  // comes last, because a remainder may be as large as a float can be.
  const float units = Mul(static_cast<float>(rest), 0x1p-126f);
  const float power = detail::Cast<float>(static_cast<uint32_t>(scale_b / 2 + 127) << 23);
  const float other_power = detail::Cast<float>(static_cast<uint32_t>(scale_b - scale_b / 2 + 127) << 23);
  return Mul(Mul(Mul(units, power), 0x1p-23f), other_power);
}

}  // namespace anydml::lane
