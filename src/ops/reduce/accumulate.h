// Accumulators for one number at a time, for hosts and for GPU threads. T is the class of the elements
// (float, or integers of 32 and 64 bits), V the type in which the accumulator holds its value.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/numbers/math/lane_math.h"
#include "ops/reduce/problem.h"

namespace anydml::reduce {

template <typename T>
inline constexpr T kLowest = std::is_same_v<T, float> ? static_cast<T>(-lane::kInfinity) : lane::kLowest<T>;
template <typename T>
inline constexpr T kHighest = std::is_same_v<T, float> ? static_cast<T>(lane::kInfinity) : lane::kHighest<T>;

template <typename T>
ANYDML_LANE bool IsNan(T x) {
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  return x != x;
}

// The larger (smaller) one; NaN if either is, with +0 larger than -0.
template <bool kMin, typename T>
ANYDML_LANE T Extreme(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float result;
    if constexpr (kMin) {
      asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    } else {
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    }
    return result;
#else
    if (IsNan(a)) return a;
    if (a == b) return kMin ? lane::Or(a, b) : lane::And(a, b);
    if constexpr (kMin) return a < b ? a : b;
    return a > b ? a : b;
#endif
  } else {
    if constexpr (kMin) return b < a ? b : a;
    return a < b ? b : a;
  }
}

// Whether x, which comes later, replaces the best so far. NaN is beyond all numbers.
template <bool kMin, bool kLast, typename T>
ANYDML_LANE bool Replaces(T x, T best) {
  if constexpr (std::is_same_v<T, float>) {
    if (IsNan(best)) return kLast && IsNan(x);
    if constexpr (kMin) return kLast ? !(x > best) : !(x >= best);
    return kLast ? !(x < best) : !(x <= best);
  } else {
    if constexpr (kMin) return kLast ? x <= best : x < best;
    return kLast ? x >= best : x > best;
  }
}

// An accumulator has Start(), Add(x, position), and Merge(another), where the other one accumulated later
// elements or, if positions do not matter, any other elements.
template <Accumulation kKind, typename T, typename V>
struct Sum {
  using Value = V;
  V value;

  static ANYDML_LANE Sum Start() { return {V{0}}; }
  ANYDML_LANE void Add(T x, uint32_t) {
    if constexpr (kKind == Accumulation::kSumSquare) {
      value = lane::Add(value, static_cast<V>(lane::Mul(x, x)));
    } else if constexpr (kKind == Accumulation::kSumAbs && !std::is_unsigned_v<T>) {
      value = lane::Add(value, static_cast<V>(lane::Abs(x)));
    } else {
      value = lane::Add(value, static_cast<V>(x));
    }
  }
  ANYDML_LANE void Merge(const Sum& other) { value = lane::Add(value, other.value); }
};

template <typename T, typename V>
struct Product {
  using Value = V;
  V value;

  static ANYDML_LANE Product Start() { return {V{1}}; }
  ANYDML_LANE void Add(T x, uint32_t) { value = lane::Mul(value, static_cast<V>(x)); }
  ANYDML_LANE void Merge(const Product& other) { value = lane::Mul(value, other.value); }
};

template <bool kMin, typename T>
struct Extremum {
  using Value = T;
  T value;

  static ANYDML_LANE Extremum Start() { return {kMin ? kHighest<T> : kLowest<T>}; }
  ANYDML_LANE void Add(T x, uint32_t) { value = Extreme<kMin>(value, x); }
  ANYDML_LANE void Merge(const Extremum& other) { Add(other.value, 0); }
};

// If nothing, or only the lowest value, was added, the position is 0: that is right for a whole output, and
// such a partial result never decides.
template <bool kMin, bool kLast, typename T>
struct Position {
  using Value = T;
  T value;
  uint32_t second;  // the position

  static ANYDML_LANE Position Start() { return {kMin ? kHighest<T> : kLowest<T>, 0}; }
  ANYDML_LANE void Add(T x, uint32_t position) {
    if (Replaces<kMin, kLast>(x, value)) {
      value = x;
      second = position;
    }
  }
  // In any order.
  ANYDML_LANE void Merge(const Position& other) {
    const bool equal = other.value == value || (IsNan(other.value) && IsNan(value));
    const bool taken = equal ? (kLast ? other.second > second : other.second < second)
                             : Replaces<kMin, false>(other.value, value);
    if (!taken) return;
    value = other.value;
    second = other.second;
  }
};

// The sum of e^(x - value), where value is the largest x. Meaningless if that is infinite.
struct LogSumExp {
  using Value = float;
  float value;
  float second;  // the sum

  static ANYDML_LANE LogSumExp Start() { return {-lane::kInfinity, 0}; }
  ANYDML_LANE void Add(float x, uint32_t) { Merge({x, 1}); }
  ANYDML_LANE void Merge(const LogSumExp& other) {
    const lane::Tag<float> d;
    if (other.value == value) {
      second = lane::Add(second, other.second);
    } else if (other.value < value) {
      second = lane::MulAdd(other.second, lane::Exp(d, lane::Sub(other.value, value)), second);
    } else if (other.value > value) {
      second = lane::MulAdd(second, lane::Exp(d, lane::Sub(value, other.value)), other.second);
      value = other.value;
    } else {
      value = lane::kNan;
    }
  }
};

// Calls f.template operator()<A>() with the accumulator's type for a kind. Wide: the type for sums of floats.
template <typename T, typename Wide, typename F>
auto ForAccumulation(Accumulation kind, bool last, F&& f) {
  using V = std::conditional_t<std::is_same_v<T, float>, Wide, T>;
  using P = std::conditional_t<std::is_same_v<T, float>, double, T>;
  switch (kind) {
    case Accumulation::kSumAbs:
      return f.template operator()<Sum<Accumulation::kSumAbs, T, V>>();
    case Accumulation::kSumSquare:
      return f.template operator()<Sum<Accumulation::kSumSquare, T, V>>();
    case Accumulation::kProduct:
      return f.template operator()<Product<T, P>>();
    case Accumulation::kMax:
      return f.template operator()<Extremum<false, T>>();
    case Accumulation::kMin:
      return f.template operator()<Extremum<true, T>>();
    case Accumulation::kArgmax:
      return last ? f.template operator()<Position<false, true, T>>()
                  : f.template operator()<Position<false, false, T>>();
    case Accumulation::kArgmin:
      return last ? f.template operator()<Position<true, true, T>>()
                  : f.template operator()<Position<true, false, T>>();
    case Accumulation::kLogSumExp:
      if constexpr (std::is_same_v<T, float>) return f.template operator()<LogSumExp>();
      [[fallthrough]];
    default:
      return f.template operator()<Sum<Accumulation::kSum, T, V>>();
  }
}

template <typename A>
inline constexpr bool kHasSecond = requires(A a) {
  a.second;
};
template <typename A>
inline constexpr bool kHasPosition = requires(A a) {
  requires std::is_same_v<decltype(a.second), uint32_t>;
};

// The function's result from the accumulated value of n numbers.
template <typename A>
ANYDML_LANE auto FinishNumber(const A& accumulated, ReduceFunction function, float n) {
  using V = typename A::Value;
  if constexpr (kHasPosition<A>) {
    return accumulated.second;
  } else if constexpr (std::is_integral_v<V>) {
    return accumulated.value;
  } else {
    const lane::Tag<float> d;
    auto y = static_cast<float>(accumulated.value);
    if constexpr (kHasSecond<A>) {
      if (y < lane::kInfinity && y > -lane::kInfinity) y = lane::Add(y, lane::Log(d, accumulated.second));
    } else if (function == ReduceFunction::kAverage) {
      y = lane::Div(y, n);
    } else if (function == ReduceFunction::kL2) {
      y = lane::Sqrt(y);
    } else if (function == ReduceFunction::kLogSum) {
      y = lane::Log(d, y);
    }
    return IsNan(y) ? lane::kNan : y;
  }
}

}  // namespace anydml::reduce
