// Clamps vectors of FLOAT32. Included inside a namespace of a Highway target, where `hn` is defined.

// The larger one, or `low` if -0 is compared with +0; NaNs are kept.
template <class V>
HWY_INLINE V AtLeast(V x, V low) {
#if HWY_TARGET == HWY_NEON  // has instructions that keep NaNs and order -0 before +0
  return V{vmaxq_f32(x.raw, low.raw)};
#else
  return hn::IfThenElse(hn::Le(x, low), low, x);
#endif
}
template <class V>
HWY_INLINE V AtMost(V x, V high) {
#if HWY_TARGET == HWY_NEON
  return V{vminq_f32(x.raw, high.raw)};
#else
  return hn::IfThenElse(hn::Ge(x, high), high, x);
#endif
}

template <class D, class V>
HWY_INLINE V WithUsualNaNs(D d, V x) {
  return hn::IfThenElse(hn::Eq(x, x), x, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

// Clamps to [low, high]: -0 becomes a lower limit of 0, NaNs become canonical.
template <class D, class V>
HWY_INLINE V ClipVector(D d, V x, V low, V high) {
  return WithUsualNaNs(d, AtMost(AtLeast(x, low), high));
}
