// A number of a reference with an error bound for the same computation in FLOAT32, with sums in any order
// (running error analysis). A reference that computes with these numbers bounds the errors of implementations
// from the magnitudes of their operands (ops/errors.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "base/data_type.h"
#include "ops/element/reference_functions.h"

namespace anydml {

// The error of a sum of `terms` products is at most terms * 2^-24 times the sum of their magnitudes
// (contract, "Numbers"), plus the errors of its terms.
struct Bounded {
  double value = 0;
  double inherited = 0;  // the error of the terms
  double magnitude = 0;  // the sum of the terms' magnitudes
  double terms = 0;      // 0: exact except for the inherited error

  Bounded() = default;
  Bounded(double exact) : value(exact), magnitude(std::fabs(exact)) {}  // NOLINT: numbers are such
  Bounded(double number, double error, double roundings)
      : value(number), inherited(error), magnitude(std::fabs(number)), terms(roundings) {}

  // Without a bound if FLOAT32 may have overflowed. Underflow costs half of the smallest number.
  double error() const {
    if (!std::isfinite(value)) return std::isnan(inherited) ? kUnbounded : inherited;
    const double all = inherited + terms * (0x1p-24 * magnitude + 0x1p-150);
    return magnitude + all < std::numeric_limits<float>::max() ? all : kUnbounded;
  }

  Bounded& operator+=(const Bounded& other) { return *this = *this + other; }
  Bounded& operator*=(const Bounded& other) { return *this = *this * other; }

  friend Bounded operator+(const Bounded& a, const Bounded& b) {
    Bounded sum;
    sum.value = a.value + b.value;
    sum.inherited = a.inherited + b.inherited;
    sum.magnitude = a.magnitude + b.magnitude;
    sum.terms = std::max(a.terms, 1.0) + std::max(b.terms, 1.0);
    return sum;
  }
  friend Bounded operator-(const Bounded& a, Bounded b) {
    b.value = -b.value;
    return a + b;
  }
  friend Bounded operator*(const Bounded& a, const Bounded& b) {
    const double of_a = a.error(), of_b = b.error();
    const double error = Scaled(of_b, a.value) + Scaled(of_a, b.value) + Scaled(of_a, of_b);
    return {a.value * b.value, error, 1};
  }

  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

 private:
  // Exact numbers stay exact, also times infinity.
  static double Scaled(double error, double factor) { return error == 0 ? 0 : error * std::fabs(factor); }
};

// The error of a result of that type, if `number` is exact to double precision and both sides round to the
// type.
inline double StoredError(const Bounded& number, DataType type) {
  if (!std::isfinite(number.value)) return number.error();
  const bool is_half = type == DataType::kFloat16;
  const double magnitude = std::fabs(number.value);
  const double error =
      number.error() + (is_half ? 0x1p-10 * magnitude + 0x1p-24 : 0x1p-23 * magnitude + 0x1p-149);
  const double most = is_half ? 65504 : std::numeric_limits<float>::max();
  return magnitude + error > most ? Bounded::kUnbounded : error;
}

// A number whose computation rounded that many times.
template <typename Number>
Number Rounded(double value, double roundings) {
  if constexpr (std::is_same_v<Number, Bounded>) return {value, 0, roundings};
  return value;
}

// f at `x` with the variation of f near it, plus `ulps` units in the last place of the result.
template <typename Function>
Bounded Around(const Bounded& x, uint32_t ulps, Function&& f) {
  const double at = f(x.value);
  if (!std::isfinite(x.value)) return {at, x.error() < Bounded::kUnbounded ? 0 : Bounded::kUnbounded, 1};
  const double reach = x.error() + 0x1p-23 * std::fabs(x.value);  // the argument is rounded, too
  double error = 0, most = std::fabs(at);
  for (const double part : {-1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0}) {
    const double near = f(x.value + part * reach);
    if (near == at || (std::isnan(near) && std::isnan(at))) continue;
    const double difference = std::fabs(near - at);
    error = std::isnan(difference) ? Bounded::kUnbounded : std::max(error, difference);
    most = std::max(most, std::fabs(near));
  }
  return {at, error + (std::isfinite(most) ? 0x1p-23 * ulps * most : 0), 1};
}

// base^exponent. Without a bound if the base may be 0.
inline double Power(double base, double exponent) { return std::pow(base, exponent); }
inline Bounded Power(const Bounded& base, double exponent) {
  constexpr uint32_t kUlps = 4;
  Bounded power = Around(base, kUlps, [&](double x) { return std::pow(x, exponent); });
  if (!std::isfinite(base.value) || base.value == 0) return power;
  if (std::fabs(base.value) <= base.error()) power.inherited = Bounded::kUnbounded;
  // The exponent is rounded, too.
  power.inherited += 0x1p-24 * std::fabs(exponent * std::log(std::fabs(base.value)) * power.value);
  return power;
}

// A function of a single number.
inline double Applied(const Instruction& instruction, double x) {
  return reference::Float(instruction, static_cast<float>(x), 0, 0);
}
inline Bounded Applied(const Instruction& instruction, const Bounded& x) {
  return Around(x, InfoOf(instruction.function).ulps,
                [&](double number) { return Applied(instruction, number); });
}

}  // namespace anydml
