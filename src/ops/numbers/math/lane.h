// Highway for one lane: the names, argument orders and meanings of hwy::HWY_NAMESPACE for plain numbers, so
// that one source of a function serves vectors, host code without Highway, and CUDA threads. A mask is a
// bool. MulAdd rounds once. Mul and Add are never fused: device code uses intrinsics for that, host code is
// compiled with -ffp-contract=off.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#define ANYDML_LANE __host__ __device__ __forceinline__
#else
#define ANYDML_LANE inline
#endif

namespace anydml::lane {

template <typename T>
struct Tag {
  using Lane = T;
};

template <class D>
using TFromD = typename D::Lane;
template <class D>
using Vec = typename D::Lane;
template <class D>
using Mask = bool;
template <class T, class D>
using Rebind = Tag<T>;
template <class D>
using RebindToSigned = Tag<std::conditional_t<sizeof(TFromD<D>) == 8, int64_t, int32_t>>;
template <class D>
using RebindToUnsigned = Tag<std::conditional_t<sizeof(TFromD<D>) == 8, uint64_t, uint32_t>>;
template <class D>
using RebindToFloat = Tag<std::conditional_t<sizeof(TFromD<D>) == 8, double, float>>;

// Constants, because device code cannot call the functions.
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
template <typename T>
inline constexpr T kLowest = std::numeric_limits<T>::lowest();
template <typename T>
inline constexpr T kHighest = std::numeric_limits<T>::max();

template <typename T>
concept Float = std::is_floating_point_v<T>;
template <typename T>
concept Integer = std::is_integral_v<T>;

namespace detail {
template <typename T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename To, typename From>
ANYDML_LANE To Cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}
}  // namespace detail

// ---- Constants

template <class D, typename T>
ANYDML_LANE Vec<D> Set(D, T value) {
  return static_cast<Vec<D>>(value);
}

template <class D>
ANYDML_LANE Vec<D> Zero(D) {
  return Vec<D>{0};
}

// ---- Bits

template <class D, typename From>
ANYDML_LANE Vec<D> BitCast(D, From from) {
  return detail::Cast<Vec<D>>(from);
}

template <typename T>
ANYDML_LANE T And(T a, T b) {
  return detail::Cast<T>(detail::Cast<detail::Bits<T>>(a) & detail::Cast<detail::Bits<T>>(b));
}

template <typename T>
ANYDML_LANE T Or(T a, T b) {
  return detail::Cast<T>(detail::Cast<detail::Bits<T>>(a) | detail::Cast<detail::Bits<T>>(b));
}

template <typename T>
ANYDML_LANE T Xor(T a, T b) {
  return detail::Cast<T>(detail::Cast<detail::Bits<T>>(a) ^ detail::Cast<detail::Bits<T>>(b));
}

template <typename T>
ANYDML_LANE T AndNot(T not_a, T b) {
  return detail::Cast<T>(~detail::Cast<detail::Bits<T>>(not_a) & detail::Cast<detail::Bits<T>>(b));
}

template <typename T>
ANYDML_LANE T Not(T a) {
  return detail::Cast<T>(~detail::Cast<detail::Bits<T>>(a));
}

template <int kBits, Integer T>
ANYDML_LANE T ShiftLeft(T a) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << kBits);
}

template <int kBits, Integer T>
ANYDML_LANE T ShiftRight(T a) {
  return a >> kBits;
}

// ---- Arithmetic. Integers wrap.

template <Integer T>
ANYDML_LANE T Add(T a, T b) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}

template <Integer T>
ANYDML_LANE T Sub(T a, T b) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) - static_cast<std::make_unsigned_t<T>>(b));
}

template <Integer T>
ANYDML_LANE T Mul(T a, T b) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
}

template <Integer T>
ANYDML_LANE T Neg(T a) {
  return Sub(T{0}, a);
}

#ifdef __CUDA_ARCH__
ANYDML_LANE float Add(float a, float b) { return __fadd_rn(a, b); }
ANYDML_LANE float Sub(float a, float b) { return __fsub_rn(a, b); }
ANYDML_LANE float Mul(float a, float b) { return __fmul_rn(a, b); }
ANYDML_LANE float Div(float a, float b) { return __fdiv_rn(a, b); }
ANYDML_LANE float Sqrt(float a) { return __fsqrt_rn(a); }
ANYDML_LANE float MulAdd(float mul, float x, float add) { return __fmaf_rn(mul, x, add); }
ANYDML_LANE double Add(double a, double b) { return __dadd_rn(a, b); }
ANYDML_LANE double Sub(double a, double b) { return __dsub_rn(a, b); }
ANYDML_LANE double Mul(double a, double b) { return __dmul_rn(a, b); }
ANYDML_LANE double Div(double a, double b) { return __ddiv_rn(a, b); }
ANYDML_LANE double Sqrt(double a) { return __dsqrt_rn(a); }
ANYDML_LANE double MulAdd(double mul, double x, double add) { return __fma_rn(mul, x, add); }
#else
template <Float T>
ANYDML_LANE T Add(T a, T b) {
  return a + b;
}
template <Float T>
ANYDML_LANE T Sub(T a, T b) {
  return a - b;
}
template <Float T>
ANYDML_LANE T Mul(T a, T b) {
  return a * b;
}
template <Float T>
ANYDML_LANE T Div(T a, T b) {
  return a / b;
}
template <Float T>
ANYDML_LANE T Sqrt(T a) {
  return std::sqrt(a);
}
template <Float T>
ANYDML_LANE T MulAdd(T mul, T x, T add) {
  return std::fma(mul, x, add);
}
#endif

// Also changes the sign of NaNs and zeros.
template <Float T>
ANYDML_LANE T Neg(T a) {
  return -a;
}

template <Float T>
ANYDML_LANE T NegMulAdd(T mul, T x, T add) {
  return MulAdd(-mul, x, add);
}

template <Float T>
ANYDML_LANE T MulSub(T mul, T x, T sub) {
  return MulAdd(mul, x, -sub);
}

template <Float T>
ANYDML_LANE T NegMulSub(T mul, T x, T sub) {
  return MulAdd(-mul, x, -sub);
}

template <typename T>
ANYDML_LANE T Abs(T a) {
  if constexpr (Float<T>) {
    return detail::Cast<T>(detail::Cast<detail::Bits<T>>(a) & ~detail::Bits<T>{0} >> 1);
  } else {
    return a < 0 ? Neg(a) : a;
  }
}

template <Float T>
ANYDML_LANE T CopySign(T magnitude, T sign) {
  const T top = detail::Cast<T>(detail::Bits<T>{1} << (sizeof(T) * 8 - 1));
  return Or(AndNot(top, magnitude), And(top, sign));
}

template <Float T>
ANYDML_LANE T CopySignToAbs(T magnitude, T sign) {
  return CopySign(magnitude, sign);
}

// Do not use it with NaNs, for which Highway's targets differ, nor where the sign of a zero matters.
template <typename T>
ANYDML_LANE T Min(T a, T b) {
  return b < a ? b : a;
}

template <typename T>
ANYDML_LANE T Max(T a, T b) {
  return a < b ? b : a;
}

// ---- Rounding and conversion

template <Float T>
ANYDML_LANE T Round(T a) {
  return std::nearbyint(a);
}
template <Float T>
ANYDML_LANE T Trunc(T a) {
  return std::trunc(a);
}
template <Float T>
ANYDML_LANE T Floor(T a) {
  return std::floor(a);
}
template <Float T>
ANYDML_LANE T Ceil(T a) {
  return std::ceil(a);
}

// Integers to floats round to nearest even; floats to integers truncate and saturate. The result for NaNs is
// unspecified.
template <class D, typename From>
ANYDML_LANE Vec<D> ConvertTo(D, From a) {
  using To = Vec<D>;
  if constexpr (Float<From> && Integer<To>) {
    // The largest integer rounds up to a power of two.
    if (!(a < static_cast<From>(kHighest<To>))) return kHighest<To>;
    if (!(a > static_cast<From>(kLowest<To>))) return kLowest<To>;
  }
  return static_cast<To>(a);
}

ANYDML_LANE int32_t NearestInt(float a) { return ConvertTo(Tag<int32_t>(), Round(a)); }

// ---- Comparison and choice

template <typename T>
ANYDML_LANE bool Lt(T a, T b) {
  return a < b;
}
template <typename T>
ANYDML_LANE bool Le(T a, T b) {
  return a <= b;
}
template <typename T>
ANYDML_LANE bool Gt(T a, T b) {
  return a > b;
}
template <typename T>
ANYDML_LANE bool Ge(T a, T b) {
  return a >= b;
}
template <typename T>
ANYDML_LANE bool Eq(T a, T b) {
  return a == b;
}
// Do not use it with NaNs, for which Highway's targets differ; use IsNaN.
template <typename T>
ANYDML_LANE bool Ne(T a, T b) {
  return a != b;
}

ANYDML_LANE bool And(bool a, bool b) { return a && b; }
ANYDML_LANE bool Or(bool a, bool b) { return a || b; }
ANYDML_LANE bool Xor(bool a, bool b) { return a != b; }
ANYDML_LANE bool AndNot(bool not_a, bool b) { return !not_a && b; }
ANYDML_LANE bool Not(bool a) { return !a; }

template <Float T>
ANYDML_LANE bool IsNaN(T a) {
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  return a != a;
}

template <typename T>
ANYDML_LANE T IfThenElse(bool mask, T yes, T no) {
  return mask ? yes : no;
}
template <typename T>
ANYDML_LANE T IfThenElseZero(bool mask, T yes) {
  return mask ? yes : T{0};
}
template <typename T>
ANYDML_LANE T IfThenZeroElse(bool mask, T no) {
  return mask ? T{0} : no;
}

// Zero if a < 0 (also for -0, as on some targets); unspecified for NaNs.
template <Float T>
ANYDML_LANE T ZeroIfNegative(T a) {
#ifdef __CUDA_ARCH__
  return ::fmax(a, T{0});
#else
  return a > 0 ? a : T{0};
#endif
}

template <class D>
ANYDML_LANE bool RebindMask(D, bool mask) {
  return mask;
}

template <class D>
ANYDML_LANE Vec<D> VecFromMask(D, bool mask) {
  return detail::Cast<Vec<D>>(mask ? ~detail::Bits<Vec<D>>{0} : detail::Bits<Vec<D>>{0});
}

template <typename T>
ANYDML_LANE bool MaskFromVec(T a) {
  return detail::Cast<detail::Bits<T>>(a) != 0;
}

template <class D>
ANYDML_LANE bool AllFalse(D, bool mask) {
  return !mask;
}

template <class D>
ANYDML_LANE bool AllTrue(D, bool mask) {
  return mask;
}

}  // namespace anydml::lane
