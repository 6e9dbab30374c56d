// Limits of vectors of FLOAT32. Text inside a namespace of a Highway target, where `hn` is a name.

// The larger one, and `low` where -0 meets +0; NaNs stay what they are.
template <class V>
HWY_INLINE V AtLeast(V x, V low) {
#if HWY_TARGET == HWY_NEON  // has instructions that keep NaNs, and know that -0 is less than +0
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

// Not below `low` nor above `high`: -0 at a lower limit of 0 becomes that, a NaN the usual one.
template <class D, class V>
HWY_INLINE V ClipVector(D d, V x, V low, V high) {
  return WithUsualNaNs(d, AtMost(AtLeast(x, low), high));
}
