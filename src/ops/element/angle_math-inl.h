// Functions of angles. Text inside a namespace: see math-inl.h and lane_math.h.

// a - n pi (or any n with few enough bits), pi in three words, each rounded down so that zeros keep their
// sign.
template <class D, class V>
ANYDML_MATH V SubtractPis(D d, V a, V n) {
  V r = ExactNegMulAdd(d, n, hn::Set(d, 0x1.921fb4p1f), a);
  r = ExactNegMulAdd(d, n, hn::Set(d, 0x1.4442dp-23f), r);
  return hn::NegMulAdd(n, hn::Set(d, 0x1.846988p-47f), r);
}

// sin(r) for |r| <= pi / 2, relative error 2^-27.3.
template <class D, class V>
ANYDML_MATH V SinNear0(D d, V r) {
  const V s = hn::Mul(r, r);
  V p = hn::MulAdd(s, hn::Set(d, 0x1.5da992p-19f), hn::Set(d, -0x1.9f6ffap-13f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.110ed8p-7f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.55554cp-3f));
  return hn::MulAdd(hn::Mul(r, s), p, r);
}

template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Sin(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V a = hn::Abs(x);
  const V magic = hn::Set(d, kToInteger);
  const V shifted = hn::MulAdd(a, hn::Set(d, 0x1.45f306p-2f), magic);
  V r = SubtractPis(d, a, hn::Sub(shifted, magic));
  auto n = hn::BitCast(di, shifted);
  const auto large = hn::Ge(a, hn::Set(d, lane::kLargeAngle));
  if (ANYDML_MATH_UNLIKELY(!hn::AllFalse(d, large))) ReduceLargeAngles<63>(d, a, 0, r, n);
  const V sign = hn::Xor(hn::BitCast(d, hn::ShiftLeft<31>(n)), hn::And(x, hn::Set(d, -0.0f)));
  return hn::Xor(SinNear0(d, r), sign);
}

// As the sine of what is a quarter turn further: the remainder is exact where the cosine is near 0.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Cos(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V a = hn::Abs(x);
  const V half = hn::Set(d, 0.5f);
  const V magic = hn::Set(d, kToInteger + 1.0f);
  const V shifted = hn::Add(hn::MulSub(a, hn::Set(d, 0x1.45f306p-2f), half), magic);
  V r = SubtractPis(d, a, hn::Add(hn::Sub(shifted, magic), half));
  auto n = hn::BitCast(di, shifted);
  const auto large = hn::Ge(a, hn::Set(d, lane::kLargeAngle));
  if (ANYDML_MATH_UNLIKELY(!hn::AllFalse(d, large))) ReduceLargeAngles<63>(d, a, uint64_t{1} << 62, r, n);
  return hn::Xor(SinNear0(d, r), hn::BitCast(d, hn::ShiftLeft<31>(n)));
}
