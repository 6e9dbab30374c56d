// The definition of each element function, written in the most obvious way; all other bodies are tested
// against it. Functions that are not exact are computed in double and rounded once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "base/half.h"
#include "ops/element/program.h"

namespace anydml::reference {

inline float Larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
inline float Smaller(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
inline float Clamp(float x, float low, float high) { return Larger(low, Smaller(x, high)); }

// ln(1 + e^t) without overflow.
inline double Softplus(double t) { return std::fmax(t, 0) + std::log1p(std::exp(-std::fabs(t))); }

// x Phi(x), with erfc, because 1 + erf would cancel.
inline double Gelu(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }

// Functions of FLOAT32 with a FLOAT32 result.
inline float Float(const Instruction& i, float a, float b, float c) {
  using F = ElementFunction;
  const double x = a, y = b;
  const float p = FloatParameter(i, 0), q = FloatParameter(i, 1);
  const double dp = p, dq = q;
  const auto rounded = [](double value) { return static_cast<float>(value); };
  switch (i.function) {
    // Exact functions: every step is rounded to FLOAT32.
    case F::kAdd:
      return a + b;
    case F::kSubtract:
      return a - b;
    case F::kMultiply:
      return a * b;
    case F::kDivide:
      return a / b;
    case F::kMean:
      return rounded((x + y) / 2);
    case F::kMaximum:
      return Larger(a, b);
    case F::kMinimum:
      return Smaller(a, b);
    case F::kDifferenceSquare: {
      const float difference = a - b;
      return difference * difference;
    }
    case F::kModulusTruncate:
      return std::fmod(a, b);
    case F::kModulusFloor: {
      const float rest = std::fmod(a, b);
      return rest != 0 && std::signbit(rest) != std::signbit(b) ? rest + b : rest;
    }
    case F::kAbs:
      return std::fabs(a);
    case F::kSign:
      return a > 0 ? 1.0f : a < 0 ? -1.0f : 0.0f;
    case F::kReciprocal:
      return 1 / a;
    case F::kSquareRoot:
      return std::sqrt(a);
    case F::kCeil:
      return std::ceil(a);
    case F::kFloor:
      return std::floor(a);
    case F::kRoundHalfToEven:
      return std::nearbyint(a);
    case F::kRoundTowardZero:
      return std::trunc(a);
    case F::kRoundHalfAway:
      return std::round(a);
    case F::kCanonical:
      return a;
    case F::kScaleBias: {
      const float product = a * p;
      return product + q;
    }
    case F::kClip:
      return Clamp(a, p, q);
    case F::kRelu:
      return Larger(a, 0);
    case F::kLeakyRelu:
      return a >= 0 ? a : p * a;
    case F::kParameterizedRelu:
      return a >= 0 ? a : b * a;
    case F::kThresholdedRelu:
      return a > p ? a : 0;
    case F::kShrink:
      return a > q ? a - p : a < -q ? a + p : 0;
    case F::kHardSigmoid: {
      const float product = p * a;
      return Clamp(product + q, 0, 1);
    }
    case F::kHardSwish: {
      const float product = p * a;
      return a * Clamp(product + q, 0, 1);
    }
    case F::kSoftsign: {
      const float sum = 1 + std::fabs(a);
      return a / sum;
    }
    case F::kReluGrad:
      return a > 0 ? b : 0;
    case F::kClipGrad:
      return a <= p || a >= q ? 0 : b;
    case F::kQuantize: {
      const float quotient = a / b;
      const float whole = std::isnan(quotient) ? 0 : std::nearbyint(quotient);
      return Clamp(whole + c, p, q);
    }
    case F::kBlend: {
      const float old = p * a, rest = 1 - p, part = rest * b;
      return old + part;
    }
    case F::kBlendSquare: {
      const float old = p * a, rest = 1 - p, square = b * b, part = rest * square;
      return old + part;
    }
    case F::kRoundToHalf:
      return ToFloat(ToHalf(a));
    case F::kAdamUpdate: {
      const float rate = p * a, step = rate * b, root = std::sqrt(c), below = root + q;
      return step / below;
    }
    case F::kAdamRate: {
      const double step = std::bit_cast<uint32_t>(a);
      const float power1 = rounded(std::pow(dp, step)), power2 = rounded(std::pow(dq, step));
      return std::sqrt(1 - power2) / (1 - power1);
    }
    // Functions within some ulps.
    case F::kExp:
      return rounded(std::exp(x));
    case F::kLog:
      return rounded(std::log(x));
    case F::kSin:
      return rounded(std::sin(x));
    case F::kCos:
      return rounded(std::cos(x));
    case F::kTan:
      return rounded(std::tan(x));
    case F::kAsin:
      return rounded(std::asin(x));
    case F::kAcos:
      return rounded(std::acos(x));
    case F::kAtan:
      return rounded(std::atan(x));
    case F::kAtan2:
      return rounded(std::atan2(x, y));
    case F::kSinh:
      return rounded(std::sinh(x));
    case F::kCosh:
      return rounded(std::cosh(x));
    case F::kTanh:
      return rounded(std::tanh(x));
    case F::kAsinh:
      return rounded(std::asinh(x));
    case F::kAcosh:
      return rounded(std::acosh(x));
    case F::kAtanh:
      return rounded(std::atanh(x));
    case F::kErf:
    case F::kErfOfHalf:
      return rounded(std::erf(x));
    case F::kPower:
      return rounded(std::pow(x, y));
    case F::kPowerInteger: {
      const auto exponent = std::bit_cast<uint32_t>(b);
      const bool is_unsigned = (i.parameters[0] & kUnsignedExponent) != 0;
      return rounded(
          std::pow(x, is_unsigned ? static_cast<double>(exponent) : static_cast<int32_t>(exponent)));
    }
    case F::kConstantPower:
      return rounded(std::pow(x, dp));
    case F::kSigmoid:
      return rounded(1 / (1 + std::exp(-x)));
    case F::kScaledTanh:
      return rounded(dp * std::tanh(dq * x));
    case F::kElu:
      return a >= 0 ? a : rounded(dp * std::expm1(x));
    case F::kScaledElu:
      return a > 0 ? q * a : rounded(dq * (dp * std::expm1(x)));
    case F::kCelu: {
      const double below = dp * std::expm1(x / dp);
      return std::isnan(below) || std::isnan(a) ? std::numeric_limits<float>::quiet_NaN()
                                                : rounded(std::fmax(0, x) + std::fmin(0, below));
    }
    case F::kSoftplus:
      return std::isnan(a) ? a : rounded(dp * Softplus(dq * x));
    case F::kGelu:
    case F::kGeluOfHalf:
      return std::isinf(a) ? Larger(a, 0) : rounded(Gelu(x));
    case F::kSwish:
      return rounded(x / (1 + std::exp(-(dp * x))));
    default:
      return std::numeric_limits<float>::quiet_NaN();  // not a function of FLOAT32
  }
}

// Comparisons, of any class.
template <typename T>
bool Compares(ElementFunction function, T a, T b) {
  switch (function) {
    case ElementFunction::kEqual:
      return a == b;
    case ElementFunction::kGreater:
      return a > b;
    case ElementFunction::kLess:
      return a < b;
    case ElementFunction::kGreaterOrEqual:
      return a >= b;
    default:
      return a <= b;
  }
}

inline bool IsInfinity(float a, uint64_t mode) {
  return std::isinf(a) && (mode == 0 || (mode == 1) == (a > 0));
}

// Functions of integers; S is a wider type in which nothing overflows.
template <typename T>
T Integer(const Instruction& i, T a, T b, T c) {
  using F = ElementFunction;
  using S = __int128;
  const S x = a, y = b;
  const auto p = static_cast<T>(i.parameters[0]), q = static_cast<T>(i.parameters[1]);
  const auto low_bits = [](S value) { return static_cast<T>(static_cast<unsigned __int128>(value)); };
  const auto product = [](S left, S right) {
    return static_cast<T>(static_cast<unsigned __int128>(left) * static_cast<unsigned __int128>(right));
  };
  constexpr auto kAllBits = static_cast<T>(~std::make_unsigned_t<T>{0});
  switch (i.function) {
    case F::kAdd:
      return low_bits(x + y);
    case F::kSubtract:
      return low_bits(x - y);
    case F::kMultiply:
      return product(x, y);
    case F::kDivide:
      return b == 0 ? kAllBits : low_bits(x / y);
    case F::kMean:
      return low_bits((x + y) / 2);
    case F::kMaximum:
      return a > b ? a : b;
    case F::kMinimum:
      return a < b ? a : b;
    case F::kDifferenceSquare: {
      const T difference = low_bits(x - y);
      return product(difference, difference);
    }
    case F::kModulusTruncate:
      return b == 0 ? kAllBits : low_bits(x % y);
    case F::kModulusFloor: {
      if (b == 0) return kAllBits;
      const S rest = x % y;
      return low_bits(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    }
    case F::kPowerWrap: {
      const bool is_unsigned = (i.parameters[0] & kUnsignedExponent) != 0;
      const int64_t exponent =
          is_unsigned ? int64_t{static_cast<uint32_t>(b)} : int64_t{static_cast<int32_t>(b)};
      const bool minus_one = a == static_cast<T>(-1) && (i.parameters[0] & kUnsignedBase) == 0;
      if (exponent < 0) return a == 0 ? kAllBits : a == 1 ? 1 : minus_one ? (exponent % 2 ? a : 1) : 0;
      uint32_t result = 1;
      uint32_t square = static_cast<uint32_t>(a);
      for (int64_t rest = exponent; rest > 0; rest /= 2, square *= square) {
        if (rest % 2 == 1) result *= square;
      }
      return static_cast<T>(result);
    }
    case F::kAbs:
      return low_bits(x < 0 ? -x : x);
    case F::kNegate:
      return low_bits(-x);
    case F::kSign:
      return low_bits(x > 0 ? 1 : x < 0 ? -1 : 0);
    case F::kScaleBias:
      return static_cast<T>(static_cast<uint64_t>(a) * i.parameters[0] + i.parameters[1]);
    case F::kClip: {
      const T at_most = a < q ? a : q;
      return at_most > p ? at_most : p;
    }
    case F::kRelu:
      return a > 0 ? a : 0;
    case F::kParameterizedRelu:
      return a >= 0 ? a : product(x, y);
    case F::kReluGrad:
      return a > 0 ? b : 0;
    case F::kClipGrad:
      return a <= p || a >= q ? 0 : b;
    case F::kLogicalAnd:
      return a != 0 && b != 0;
    case F::kLogicalOr:
      return a != 0 || b != 0;
    case F::kLogicalXor:
      return (a != 0) != (b != 0);
    case F::kLogicalNot:
      return a == 0;
    case F::kSelect:
      return a != 0 ? b : c;
    case F::kBitAnd:
      return a & b;
    case F::kBitOr:
      return a | b;
    case F::kBitXor:
      return a ^ b;
    case F::kBitNot:
      return static_cast<T>(~a);
    case F::kMaskAnd:
      return a & p;
    case F::kMaskXor:
      return a ^ p;
    case F::kShiftLeft:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << (b & p));
    case F::kShiftRight:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) >> (b & p));
    case F::kBitCount:
      return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
    default:
      return 0;  // not a function of integers
  }
}

inline double Double(const Instruction& i, double a, double b) {
  const auto p = std::bit_cast<double>(i.parameters[0]), q = std::bit_cast<double>(i.parameters[1]);
  switch (i.function) {
    case ElementFunction::kPowerRounded:
      return std::pow(a, b);
    case ElementFunction::kScaleBias: {
      const double product = a * p;
      return product + q;
    }
    case ElementFunction::kShrink:
      return a > q ? a - p : a < -q ? a + p : 0;
    default:
      return a;  // kCanonical
  }
}

}  // namespace anydml::reference
