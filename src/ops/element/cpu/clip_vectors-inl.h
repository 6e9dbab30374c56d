// Limits of vectors of FLOAT32. Text inside a namespace of a Highway target, where `hn` is a name.

// Not below `low` nor above `high`: -0 at a lower limit of 0 becomes that, a NaN the usual one.
template <class D, class V>
HWY_INLINE V ClipVector(D d, V x, V low, V high) {
#if HWY_TARGET == HWY_NEON  // has instructions that keep NaNs, and know that -0 is less than +0
  const V z{vminq_f32(vmaxq_f32(x.raw, low.raw), high.raw)};
#else
  const auto y = hn::IfThenElse(hn::Le(x, low), low, x);
  const auto z = hn::IfThenElse(hn::Ge(y, high), high, y);
#endif
  return hn::IfThenElse(hn::IsNaN(z), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), z);
}
