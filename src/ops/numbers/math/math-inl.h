// Functions of floats, as Exp(d, x), for vectors of any Highway target; lane_math.h has them for one number.
// FLOAT32 results are within 2 ulp of the true values (4 for Pow and compositions), subnormals included;
// special values follow IEEE 754. With FMA, every target and the one-lane form give the same bits, except for
// NaNs (Canonical). Compile with -ffp-contract=off.
#if defined(ANYDML_ELEMENT_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYDML_ELEMENT_MATH_INL_H_
#undef ANYDML_ELEMENT_MATH_INL_H_
#else
#define ANYDML_ELEMENT_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include "ops/numbers/math/rare_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#define ANYDML_MATH HWY_INLINE
#define ANYDML_MATH_UNLIKELY HWY_UNLIKELY

inline constexpr bool kFused = HWY_NATIVE_FMA;
// Whether testing if all lanes are in the usual range pays: not for four lanes on Arm.
inline constexpr bool kLooksAtLanes = !HWY_ARCH_ARM;

// The larger of x and `bound`; keeps NaNs. One instruction on x86, which then returns its second operand, and
// with Arm's own intrinsics (Highway's use the variants that prefer numbers).
template <class D, class V>
HWY_INLINE V AtLeast(D d, V x, float bound) {
#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  if constexpr (hn::MaxLanes(D()) == 4) return V(vmaxq_f32(x.raw, hn::Set(d, bound).raw));
#endif
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(hn::Set(d, bound), x);
#else
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, bound)), hn::Set(d, bound), x);
#endif
}

template <class D, class V>
HWY_INLINE V AtMost(D d, V x, float bound) {
#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  if constexpr (hn::MaxLanes(D()) == 4) return V(vminq_f32(x.raw, hn::Set(d, bound).raw));
#endif
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(hn::Set(d, bound), x);
#else
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, bound)), hn::Set(d, bound), x);
#endif
}

// With AVX-512 instructions: y * 2^n, rounded once; and `nan` if x is a NaN (the table has a digit for each
// of eight kinds of numbers, quiet and signalling NaNs first: 0 selects the first operand, 1 the other).
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
template <class D>
inline constexpr bool kScales = hn::MaxLanes(D()) == 16;
template <class V>
HWY_INLINE V Scale(V y, V n) {
  return V{_mm512_scalef_ps(y.raw, n.raw)};
}
template <class V>
HWY_INLINE V ReplaceNans(V x, V nan) {
  return V{_mm512_fixupimm_ps(nan.raw, x.raw, _mm512_set1_epi32(0x11111100), 0)};
}
#else
template <class D>
inline constexpr bool kScales = false;
#endif

// The smaller of |x| and `bound`; unspecified if x is a NaN.
template <class D, class V>
HWY_INLINE V MagnitudeAtMost(D d, V x, float bound) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // 2: the smaller magnitude; 8: without a sign.
  if constexpr (kScales<D>) return V{_mm512_range_ps(x.raw, hn::Set(d, bound).raw, 2 | 8)};
#endif
  return AtMost(d, hn::Abs(x), bound);
}

// Hooks for faster one-lane versions in a limited range.
template <class D, class V>
HWY_INLINE V Inverse(D d, V x) {
  return hn::Div(hn::Set(d, 1.0f), x);
}

template <class D, class V>
HWY_INLINE V Quotient(D, V a, V b) {
  return hn::Div(a, b);
}

// Handles the lanes with large angles one by one, since they are rare.
template <class D, class V, class I>
HWY_NOINLINE void ReduceLargeAngles(D d, V x, V& remainder, V& low, I& count) {
  const hn::RebindToSigned<D> di;
  HWY_ALIGN float angles[hn::MaxLanes(d)];
  HWY_ALIGN float remainders[hn::MaxLanes(d)];
  HWY_ALIGN float lows[hn::MaxLanes(d)];
  HWY_ALIGN int32_t counts[hn::MaxLanes(d)];
  hn::Store(x, d, angles);
  hn::Store(remainder, d, remainders);
  hn::Store(low, d, lows);
  hn::Store(count, di, counts);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (angles[i] >= lane::kLargeAngle) {
      remainders[i] = lane::ReduceLargeAngle(angles[i], lows[i], counts[i]);
    }
  }
  remainder = hn::Load(d, remainders);
  low = hn::Load(d, lows);
  count = hn::Load(di, counts);
}

// Handles the lanes with large quotients one by one.
template <class D, class V>
HWY_NOINLINE void FmodOfLarge(D d, V a, V b, V quotient, V& remainder) {
  HWY_ALIGN float dividends[hn::MaxLanes(d)];
  HWY_ALIGN float divisors[hn::MaxLanes(d)];
  HWY_ALIGN float quotients[hn::MaxLanes(d)];
  HWY_ALIGN float remainders[hn::MaxLanes(d)];
  hn::Store(a, d, dividends);
  hn::Store(b, d, divisors);
  hn::Store(quotient, d, quotients);
  hn::Store(remainder, d, remainders);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (quotients[i] > lane::kLargeQuotient) remainders[i] = lane::FmodOfPositive(dividends[i], divisors[i]);
  }
  remainder = hn::Load(d, remainders);
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

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
