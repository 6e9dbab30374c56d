// The error function and functions based on it. Included inside a namespace: see math-inl.h and lane_math.h.

// erf(t) = 1 - e^-R(t) with R(t) = -ln(erfc(t)) = t (2 / sqrt(pi) + P(t)), relative error 2^-27.9 of erf for
// t <= 3.93, beyond which erf rounds to 1. Near 0 nothing cancels, so one formula suffices.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Erf(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  const V t = AtMost(d, hn::Abs(x), 3.93f);
  const V s = hn::Mul(t, t);
  V p = hn::MulAdd(t, hn::Set(d, 0x1.edba6ap-14f), hn::Set(d, -0x1.4bed84p-11f));
  p = hn::MulAdd(s, hn::Set(d, -0x1.36db1p-17f), p);
  p = hn::MulAdd(s, p, hn::MulAdd(t, hn::Set(d, 0x1.b52194p-10f), hn::Set(d, -0x1.516fap-13f)));
  p = hn::MulAdd(s, p, hn::MulAdd(t, hn::Set(d, -0x1.39cc9cp-6f), hn::Set(d, 0x1.a4fa4ap-4f)));
  p = hn::MulAdd(s, p, hn::MulAdd(t, hn::Set(d, 0x1.45f2fap-1f), hn::Set(d, -0x1.d0e29cp-25f)));
  const V minus_log = ExactMulAdd(d, t, hn::Set(d, 0x1.20dd76p0f), hn::Mul(t, p));
  const V magic = hn::Set(d, kToInteger + 127.0f);
  const V shifted = hn::NegMulAdd(minus_log, hn::Set(d, 0x1.715476p0f), magic);
  const V r = hn::NegMulSub(hn::Sub(shifted, magic), hn::Set(d, 0x1.62e43p-1f), minus_log);
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::CopySignToAbs(hn::NegMulAdd(power, ExpTail(d, r), hn::Sub(one, power)), x);
}

// Erf for results that are rounded to FLOAT16: its error is below 1/100 of a half's spacing before rounding,
// at half the instructions. erf(x) = x P(x^2 - c), where c is half the largest square.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V ErfOfHalf(D d, V x) {
  const V t = AtLeast(d, AtMost(d, x, 3.25f), -3.25f);  // beyond which the result is 1
  const V v = hn::MulAdd(t, t, hn::Set(d, -5.28125f));
  const V s = hn::Mul(v, v);
  V p = hn::MulAdd(v, hn::Set(d, -0x1.6349acp-29f), hn::Set(d, 0x1.0f312ap-26f));
  p = hn::MulAdd(s, hn::Set(d, 0x1.acc92ep-33f), p);
  p = hn::MulAdd(s, p, hn::MulAdd(v, hn::Set(d, -0x1.333be2p-23f), hn::Set(d, 0x1.ae8edp-20f)));
  p = hn::MulAdd(s, p, hn::MulAdd(v, hn::Set(d, -0x1.d25b64p-17f), hn::Set(d, 0x1.bcc62p-14f)));
  p = hn::MulAdd(s, p, hn::MulAdd(v, hn::Set(d, -0x1.962f28p-11f), hn::Set(d, 0x1.6816f4p-8f)));
  p = hn::MulAdd(s, p, hn::MulAdd(v, hn::Set(d, -0x1.4ca9fp-5f), hn::Set(d, 0x1.bd1274p-2f)));
  return hn::Mul(t, p);
}

// x Phi(x) = -P(1 / x^2) e^(-x^2 / 2) for x below -3, relative error 2^-26.6 of P. The exponent is half of
// x^2, in two words: an ulp of 100 matters in an exponent.
template <class D, class V>
ANYDML_MATH V GeluFarBelow0(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V t = AtMost(d, hn::Abs(x), 14.4f);  // beyond which the result is 0
  const V half = hn::Mul(t, hn::Set(d, 0.5f));
  const V square = hn::Mul(t, half);
  const V square_low = ProductError(d, t, half, square);
  const V inverse = Inverse(d, t);
  const V s = hn::Mul(inverse, inverse);
  V p = hn::MulAdd(s, hn::Set(d, -0x1.0eadb4p10f), hn::Set(d, 0x1.3e2d6cp9f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.60c934p7f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.0bda46p5f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.705350p2f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.31763ap0f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.987cf0p-2f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.98844ep-2f));
  // The power of two is scaled by 2^64, which the last product undoes, so that only this product rounds to
  // subnormals.
  const V magic = hn::Set(d, kToInteger + 127.0f + 64.0f);
  const V shifted = hn::NegMulAdd(square, hn::Set(d, 0x1.715476p0f), magic);
  const V r = SubtractLn2s(d, hn::Neg(square), hn::Sub(shifted, magic));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const V scaled = hn::Mul(hn::MulAdd(p, ExpTail(d, hn::Sub(r, square_low)), p), power);
  return hn::Mul(scaled, hn::Set(d, -0x1p-64f));
}

// x Phi(x) = max(x, 0) - t Phi(-t) with t = |x|, so that nothing cancels on either side. For t <= 3, Phi(-t)
// = e^(-t^2 / 2 - t L(t)) / 2 with a polynomial L, absolute error 2^-27.2. Below -3 few inputs occur, so they
// are handled separately; above 3 the difference need not be exact. NaNs are handled with the few inputs and
// become canonical. kNear: there are none of these.
template <bool kNear = false, class D, class V = hn::Vec<D>>
ANYDML_MATH V Gelu(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V t = MagnitudeAtMost(d, x, 6.0f);  // beyond which the result is x
  const V half = hn::Mul(t, hn::Set(d, 0.5f));
  const V square = hn::Mul(t, half);
  V l = hn::MulAdd(t, hn::Set(d, 0x1.c6b9aap-15f), hn::Set(d, -0x1.b5627p-12f));
  l = hn::MulAdd(square, hn::Set(d, -0x1.93946ep-18f), l);
  l = hn::MulAdd(square, l, hn::MulAdd(t, hn::Set(d, 0x1.9aa4ecp-11f), hn::Set(d, -0x1.6e80cap-16f)));
  l = hn::MulAdd(square, l, hn::MulAdd(t, hn::Set(d, -0x1.3b5328p-7f), hn::Set(d, 0x1.29c758p-4f)));
  l = hn::MulAdd(square, l, hn::MulAdd(t, hn::Set(d, -0x1.741bbp-3f), hn::Set(d, 0x1.98845cp-1f)));
  const V magic = hn::Set(d, kToInteger + 127.0f);
  const V shifted = hn::NegMulAdd(hn::MulAdd(t, l, square), hn::Set(d, 0x1.715476p0f), magic);
  const V n = hn::Sub(shifted, magic);
  // Recomputes the square exactly: an ulp of it matters in an exponent.
  V r = ExactNegMulAdd(d, t, half, hn::Mul(n, hn::Set(d, -0x1.62e4p-1f)));
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), hn::NegMulAdd(t, l, r));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const V y = hn::NegMulAdd(power, hn::MulAdd(half, ExpTail(d, r), half), AtLeast(d, x, -0.0f));
  if constexpr (!kNear) {
    const auto near = hn::Ge(x, hn::Set(d, -3.0f));
    if (ANYDML_MATH_UNLIKELY(!hn::AllTrue(d, near))) {
      return hn::IfThenElse(near, y, Canonical(d, GeluFarBelow0(d, x)));
    }
  }
  return y;
}

// Whether four vectors have none of the inputs that are handled separately.
template <class D, class V>
ANYDML_MATH bool AreNearGelus(D d, V a, V b, V c, V e) {
  const V least = hn::Set(d, -3.0f);
  const auto ab = hn::And(hn::Ge(a, least), hn::Ge(b, least));
  return hn::AllTrue(d, hn::And(ab, hn::And(hn::Ge(c, least), hn::Ge(e, least))));
}

// 2^z / 2 for z in [-80, 0] or NaN, relative error 2^-21.
template <class D, class V>
ANYDML_MATH V HalfOfPower(D d, V z) {
#ifdef __CUDA_ARCH__
  V power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(hn::Sub(z, hn::Set(d, 1.0f))));
  return power;
#else
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, kToInteger + 126.0f);
  const V shifted = hn::Add(z, magic);
  const V f = hn::Sub(z, hn::Sub(shifted, magic));
  V e = hn::MulAdd(f, hn::Set(d, 0x1.399ec2p-7f), hn::Set(d, 0x1.ca13e4p-5f));
  e = hn::MulAdd(f, e, hn::Set(d, 0x1.ec06b2p-3f));
  e = hn::MulAdd(f, e, hn::Set(d, 0x1.62e0dep-1f));
  e = hn::MulAdd(f, e, hn::Set(d, 0x1.ffffe8p-1f));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::Mul(e, power);
#endif
}

// Gelu for results that are rounded to FLOAT16: its error is below 1/20 of a half's spacing before rounding,
// at half the instructions. Phi(-t) = 2^(t P(t)) / 2; the exponent may lose precision as one word.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V GeluOfHalf(D d, V x) {
  const V t = AtMost(d, hn::Abs(x), 6.25f);  // beyond which the result is 0 or x
  const V s = hn::Mul(t, t);
  V p = hn::MulAdd(t, hn::Set(d, 0x1.1dd81p-15f), hn::Set(d, -0x1.931c06p-11f));
  p = hn::MulAdd(s, p, hn::MulAdd(t, hn::Set(d, 0x1.07680ap-7f), hn::Set(d, -0x1.b45284p-5f)));
  p = hn::MulAdd(s, p, hn::MulAdd(t, hn::Set(d, -0x1.d5f942p-2f), hn::Set(d, -0x1.26afcep0f)));
  const V power = HalfOfPower(d, hn::Mul(t, p));
  return hn::NegMulAdd(t, power, AtLeast(d, x, -0.0f));
}
