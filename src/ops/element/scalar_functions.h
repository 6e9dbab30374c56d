// The bodies of element functions and classes that gain nothing from vectors: integer divisions, 64-bit
// numbers, shifts by variable amounts, powers. For hosts and, being constexpr or marked as such, for devices.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/element/program.h"
#include "ops/numbers/math/lane.h"

namespace anydml::scalar_functions {

template <typename T>
ANYDML_LANE T Parameter(const Instruction& instruction, int i) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(instruction.parameters[i]);
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(instruction.parameters[i]));
  } else {
    return static_cast<T>(instruction.parameters[i]);
  }
}

// Functions with a body in functions-inl.h or transcendental_functions-inl.h only.
#define ANYDML_DECLARE(name, ...) struct name;
ANYDML_ELEMENT_FUNCTIONS(ANYDML_DECLARE)
#undef ANYDML_DECLARE

// Arithmetic modulo 2^n, since signed overflow is undefined in C++.
template <typename T>
using Bits = std::make_unsigned_t<T>;

#define ANYDML_SCALAR_UNARY(name)                                   \
  struct name {                                                     \
    template <typename T>                                           \
    static ANYDML_LANE T Call(T a, const Instruction& instruction); \
  };                                                                \
  template <typename T>                                             \
  ANYDML_LANE T name::Call(T a, [[maybe_unused]] const Instruction& instruction)

#define ANYDML_SCALAR_BINARY(name)                                       \
  struct name {                                                          \
    template <typename T>                                                \
    static ANYDML_LANE T Call(T a, T b, const Instruction& instruction); \
  };                                                                     \
  template <typename T>                                                  \
  ANYDML_LANE T name::Call(T a, T b, [[maybe_unused]] const Instruction& instruction)

ANYDML_SCALAR_BINARY(Add) { return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b)); }
ANYDML_SCALAR_BINARY(Subtract) { return static_cast<T>(static_cast<Bits<T>>(a) - static_cast<Bits<T>>(b)); }
ANYDML_SCALAR_BINARY(Multiply) { return static_cast<T>(static_cast<Bits<T>>(a) * static_cast<Bits<T>>(b)); }

// Truncating division. By 0: all bits set. INT_MIN / -1 overflows and gives INT_MIN.
ANYDML_SCALAR_BINARY(Divide) {
  if (b == 0) return static_cast<T>(~Bits<T>{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(Bits<T>{0} - static_cast<Bits<T>>(a));
  }
  return a / b;
}
// Called for numbers of 32 bits, whose sum fits. Truncates.
ANYDML_SCALAR_BINARY(Mean) { return (a + b) / 2; }
ANYDML_SCALAR_BINARY(Maximum) { return a > b ? a : b; }
ANYDML_SCALAR_BINARY(Minimum) { return a < b ? a : b; }
ANYDML_SCALAR_BINARY(ModulusTruncate) {
  if (b == 0) return static_cast<T>(~Bits<T>{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return a % b;
}
ANYDML_SCALAR_BINARY(ModulusFloor) {
  const T rest = ModulusTruncate::Call(a, b, instruction);
  if constexpr (std::is_signed_v<T>) {
    if (b != 0 && rest != 0 && (rest < 0) != (b < 0)) return rest + b;
  }
  return rest;
}

// a^b modulo 2^32. With a negative exponent the result is 0, except for the bases 1, -1 and 0 (all bits set).
ANYDML_SCALAR_BINARY(PowerWrap) {
  const bool negative = (instruction.parameters[0] & kUnsignedExponent) == 0 && b < 0;
  if (negative) {
    if (a == 1) return 1;
    if (a == 0) return -1;
    if (a == -1 && (instruction.parameters[0] & kUnsignedBase) == 0) return (b & 1) != 0 ? -1 : 1;
    return 0;
  }
  uint32_t result = 1;
  auto square = static_cast<uint32_t>(a);
  for (auto rest = static_cast<uint32_t>(b); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// a^b of an integer a, to be truncated by the store. Powers that can be exact are computed exactly: a result
// slightly below an integer would be truncated to the one before.
ANYDML_SCALAR_BINARY(PowerRounded) {
  constexpr double kMaxExact = 64;  // larger ones are outside every range, or 0 or 1
  if (b == 0.5) return std::sqrt(a);
  if (b != std::trunc(b) || std::fabs(b) > kMaxExact) return std::pow(a, b);
  double result = 1;
  for (int i = static_cast<int>(std::fabs(b)); i > 0; --i) result *= a;
  return b < 0 ? 1 / result : result;
}

ANYDML_SCALAR_UNARY(Abs) { return a < 0 ? static_cast<T>(Bits<T>{0} - static_cast<Bits<T>>(a)) : a; }
ANYDML_SCALAR_UNARY(Negate) { return static_cast<T>(Bits<T>{0} - static_cast<Bits<T>>(a)); }
ANYDML_SCALAR_UNARY(Sign) {
  if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(a != 0);
  } else {
    return static_cast<T>(a > 0) - static_cast<T>(a < 0);
  }
}

// NaN results are canonical (functions-inl.h).
template <typename T>
ANYDML_LANE T OneNan(T value) {
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  return value != value ? std::numeric_limits<T>::quiet_NaN() : value;
}

ANYDML_SCALAR_UNARY(Canonical) { return OneNan(a); }
ANYDML_SCALAR_UNARY(ScaleBias) {
  const T scale = Parameter<T>(instruction, 0), bias = Parameter<T>(instruction, 1);
  if constexpr (std::is_floating_point_v<T>) {
    return OneNan(lane::Add(lane::Mul(a, scale), bias));
  } else {
    return Add::Call(Multiply::Call(a, scale, instruction), bias, instruction);
  }
}
ANYDML_SCALAR_UNARY(Clip) {
  const T low = Parameter<T>(instruction, 0), high = Parameter<T>(instruction, 1);
  const T at_most = a < high ? a : high;
  return at_most > low ? at_most : low;
}
ANYDML_SCALAR_UNARY(Shrink) {
  const T bias = Parameter<T>(instruction, 0), threshold = Parameter<T>(instruction, 1);
  if (a > threshold) return a - bias;
  return a < -threshold ? a + bias : 0;
}
ANYDML_SCALAR_BINARY(ClipGrad) {
  return a <= Parameter<T>(instruction, 0) || a >= Parameter<T>(instruction, 1) ? 0 : b;
}

ANYDML_SCALAR_BINARY(Equal) { return a == b; }
ANYDML_SCALAR_BINARY(Greater) { return a > b; }
ANYDML_SCALAR_BINARY(Less) { return a < b; }
ANYDML_SCALAR_BINARY(GreaterOrEqual) { return a >= b; }
ANYDML_SCALAR_BINARY(LessOrEqual) { return a <= b; }
ANYDML_SCALAR_BINARY(BitAnd) { return a & b; }
ANYDML_SCALAR_BINARY(BitOr) { return a | b; }
ANYDML_SCALAR_BINARY(BitXor) { return a ^ b; }
ANYDML_SCALAR_UNARY(BitNot) { return ~a; }
ANYDML_SCALAR_UNARY(MaskAnd) { return a & Parameter<T>(instruction, 0); }
ANYDML_SCALAR_UNARY(MaskXor) { return a ^ Parameter<T>(instruction, 0); }
// Shift amounts are taken modulo the elements' width.
ANYDML_SCALAR_BINARY(ShiftLeft) { return a << (b & Parameter<T>(instruction, 0)); }
ANYDML_SCALAR_BINARY(ShiftRight) { return a >> (b & Parameter<T>(instruction, 0)); }
ANYDML_SCALAR_UNARY(BitCount) {
#ifdef __CUDA_ARCH__
  return static_cast<T>(__popcll(a));
#else
  return static_cast<T>(std::popcount(a));
#endif
}

struct Select {
  template <typename T>
  static ANYDML_LANE T Call(T a, T b, T c, const Instruction&) {
    return a != 0 ? b : c;
  }
};

// sqrt(1 - beta2^T) / (1 - beta1^T); the source is the step T as bits of UINT32. The powers are rounded to
// FLOAT32, as are the differences.
struct AdamRate {
  static ANYDML_LANE float Call(float a, const Instruction& instruction) {
    const double step = std::bit_cast<uint32_t>(a);
    const auto power1 = static_cast<float>(std::pow(double{Parameter<float>(instruction, 0)}, step));
    const auto power2 = static_cast<float>(std::pow(double{Parameter<float>(instruction, 1)}, step));
    return OneNan(lane::Div(lane::Sqrt(lane::Sub(1.0f, power2)), lane::Sub(1.0f, power1)));
  }
};

#undef ANYDML_SCALAR_UNARY
#undef ANYDML_SCALAR_BINARY

}  // namespace anydml::scalar_functions
