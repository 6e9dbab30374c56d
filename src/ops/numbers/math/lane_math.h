// The functions of math-inl.h for one number, as lane::Exp(lane::Tag<float>(), x): for host code without
// Highway and for CUDA threads.
#pragma once

#include "ops/numbers/math/rare_lanes.h"
#include "ops/numbers/math/lane.h"

namespace anydml::lane {
namespace hn = anydml::lane;

#define ANYDML_MATH ANYDML_LANE
#ifdef __CUDACC__
#define ANYDML_MATH_UNLIKELY(condition) (condition)
#else
#define ANYDML_MATH_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#endif

inline constexpr bool kFused = true, kLooksAtLanes = true;
template <class D>
inline constexpr bool kScales = false;  // see math-inl.h

// The larger of x and `bound`; keeps NaNs.
template <class D>
ANYDML_LANE float AtLeast(D, float x, float bound) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(bound));
  return result;
#else
  return x < bound ? bound : x;
#endif
}

template <class D>
ANYDML_LANE float AtMost(D, float x, float bound) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(bound));
  return result;
#else
  return x > bound ? bound : x;
#endif
}

// The smaller of |x| and `bound`; unspecified for NaNs.
template <class D>
ANYDML_LANE float MagnitudeAtMost(D d, float x, float bound) {
  return AtMost(d, Abs(x), bound);
}

// 1 / x, correctly rounded, for x and results far from overflow and underflow.
template <class D>
ANYDML_LANE float Inverse(D, float x) {
#ifdef __CUDA_ARCH__
  float y;  // off by at most one ulp; one Newton step makes it correctly rounded
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return __fmaf_rn(__fmaf_rn(-x, y, 1.0f), y, y);
#else
  return 1.0f / x;
#endif
}

// a / b, likewise, and with the sign of a if a is 0.
template <class D>
ANYDML_LANE float Quotient(D d, float a, float b) {
#ifdef __CUDA_ARCH__
  const float inverse = Inverse(d, b);
  const float quotient = __fmul_rn(a, inverse);
  // The remainder is computed negated: otherwise 0 times the inverse is added to -0, which gives +0.
  return __fmaf_rn(-__fmaf_rn(b, quotient, -a), inverse, quotient);
#else
  return a / b;
#endif
}

template <class D>
ANYDML_LANE void ReduceLargeAngles(D, float x, float& remainder, float& low, int32_t& count) {
  remainder = ReduceLargeAngle(x, low, count);
}

template <class D>
ANYDML_LANE void FmodOfLarge(D, float a, float b, float, float& remainder) {
  remainder = FmodOfPositive(a, b);
}

#include "ops/numbers/math/basic_math-inl.h"
#include "ops/numbers/math/exp_math-inl.h"
#include "ops/numbers/math/angle_math-inl.h"
#include "ops/numbers/math/erf_math-inl.h"
#include "ops/numbers/math/log_math-inl.h"
#include "ops/numbers/math/fmod_math-inl.h"
#include "ops/numbers/math/inverse_math-inl.h"

#undef ANYDML_MATH
#undef ANYDML_MATH_UNLIKELY

}  // namespace anydml::lane
