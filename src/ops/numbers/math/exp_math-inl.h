// e^x and functions based on it. Included inside a namespace: see math-inl.h and lane_math.h.

// e^r = 1 + r + r^2 q(r) for |r| <= ln(2)/2; relative error 2^-28.2 of e^r. (Polynomials are evaluated in
// pairs of terms if r^2 is available: shorter dependency chains, no more instructions.)
template <class D, class V>
ANYDML_MATH V ExpTail(D d, V r) {
  const V s = hn::Mul(r, r);
  const V high = hn::MulAdd(r, hn::Set(d, 0x1.1239a0p-7f), hn::Set(d, 0x1.5558b4p-5f));
  const V low = hn::MulAdd(r, hn::Set(d, 0x1.555492p-3f), hn::Set(d, 0x1.fffffcp-2f));
  const V q = hn::MulAdd(s, hn::MulAdd(s, hn::Set(d, 0x1.6a495cp-10f), high), low);
  return hn::MulAdd(s, q, r);
}

// 1 - e^-r, the same bits as -ExpTail(-r).
template <class D, class V>
ANYDML_MATH V MinusExpTail(D d, V r) {
  const V s = hn::Mul(r, r);
  const V high = hn::NegMulAdd(r, hn::Set(d, 0x1.1239a0p-7f), hn::Set(d, 0x1.5558b4p-5f));
  const V low = hn::NegMulAdd(r, hn::Set(d, 0x1.555492p-3f), hn::Set(d, 0x1.fffffcp-2f));
  const V q = hn::MulAdd(s, hn::MulAdd(s, hn::Set(d, 0x1.6a495cp-10f), high), low);
  return hn::NegMulAdd(s, q, r);
}

// x - n ln 2. The high part of ln 2 has 16 bits, so that its product with n is exact for |n| < 256.
template <class D, class V>
ANYDML_MATH V SubtractLn2s(D d, V x, V n) {
  return hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), x));
}

// e^x for x in [-104, 89] or NaN.
template <class D, class V>
ANYDML_MATH V ExpInRange(D d, V x) {
  const V magic = hn::Set(d, kToInteger + 254.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 0x1.715476p0f), magic);
  const V n = hn::Sub(shifted, magic);
  const V tail = ExpTail(d, SubtractLn2s(d, x, n));
  if constexpr (kScales<D>) {
    return Scale(hn::Add(hn::Set(d, 1.0f), tail), n);
  } else {
    V other_power;
    const V power = TwoPowers(d, shifted, other_power);
    return hn::Mul(hn::MulAdd(power, tail, power), other_power);
  }
}

template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Exp(D d, V x) {
  return ExpInRange(d, AtLeast(d, AtMost(d, x, 89.0f), -104.0f));
}

// factor e^(t + low) for |t| >= 80 and a small low, where e^t may overflow or underflow although the product
// does not. e^t is 2^150 or 2^-150 times a power that does neither; half of the exponent goes to the factor,
// and the last product rounds alone. t - n ln 2 is exact with the high part of ln 2, the low part joins
// `low`.
template <class D, class V>
ANYDML_MATH V TimesExp(D d, V factor, V t, V low) {
  const auto negative = hn::Lt(t, hn::Zero(d));
  const V n = hn::IfThenElse(negative, hn::Set(d, -150.0f), hn::Set(d, 150.0f));
  const V root = hn::IfThenElse(negative, hn::Set(d, 0x1p-75f), hn::Set(d, 0x1p75f));
  const V power = Exp(d, hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), t));
  const V rest = hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), low);
  const V correction = hn::MulAdd(hn::Mul(rest, hn::Set(d, 0.5f)), rest, rest);  // e^rest - 1
  const V corrected = hn::Mul(power, hn::Add(hn::Set(d, 1.0f), correction));
  return hn::Mul(hn::Mul(hn::Mul(factor, root), corrected), root);
}

// True if e^x is a normal number for all of four vectors; may be false without need, and is for NaNs.
template <class D, class V>
ANYDML_MATH bool HaveNormalExp(D d, V a, V b, V c, V e) {
  const V squares = hn::MulAdd(e, e, hn::MulAdd(c, c, hn::MulAdd(b, b, hn::Mul(a, a))));
  return hn::AllTrue(d, hn::Lt(squares, hn::Set(d, 7500.0f)));  // |x| < 86.6
}

// e^x if that is a normal number, with FMA: the same bits as Exp, half of whose instructions handle other
// results. (A different magic number would matter only halfway between two values of n, where x is a multiple
// of 2^22.)
template <class D, class V>
ANYDML_MATH V NormalExp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, kToInteger + 127.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 0x1.715476p0f), magic);
  const V tail = ExpTail(d, SubtractLn2s(d, x, hn::Sub(shifted, magic)));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::MulAdd(power, tail, power);
}

// e^x - 1
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Expm1(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V clamped = AtLeast(d, AtMost(d, x, 89.0f), -18.0f);
  // Half the power of two, which may itself be 2^128.
  const V magic = hn::Set(d, kToInteger + 126.0f);
  const V shifted = hn::MulAdd(clamped, hn::Set(d, 0x1.715476p0f), magic);
  const V tail = ExpTail(d, SubtractLn2s(d, clamped, hn::Sub(shifted, magic)));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const V half = hn::MulAdd(power, tail, hn::Sub(power, hn::Set(d, 0.5f)));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-25f)), x, hn::Add(half, half));
}

// Half of sinh |x| and of cosh x: with e^r = 1 + c + s, c even and s odd, and e^-r = 1 + c - s, sinh is (1 +
// c) (2^n - 2^-n) / 2 + s (2^n + 2^-n) / 2, and nothing cancels.
template <bool kCosh, class D, class V>
ANYDML_MATH V HalfHyperbolic(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V a = AtMost(d, hn::Abs(x), 89.5f);
  const V magic = hn::Set(d, kToInteger + 125.0f);
  const V shifted = hn::MulAdd(a, hn::Set(d, 0x1.715476p0f), magic);
  const V r = SubtractLn2s(d, a, hn::Sub(shifted, magic));
  const V square = hn::Mul(r, r);
  V c = hn::MulAdd(square, hn::Set(d, 0x1.6d4f1ap-10f), hn::Set(d, 0x1.5554e6p-5f));
  c = hn::Mul(square, hn::MulAdd(square, c, hn::Set(d, 0.5f)));
  const V p = hn::MulAdd(square, hn::Set(d, 0x1.1227acp-7f), hn::Set(d, 0x1.5554bp-3f));
  const V s = hn::MulAdd(hn::Mul(r, square), p, r);
  // 2^(n - 2) and 2^(-n - 2), or 0 if that is negligible.
  const auto n = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, hn::Set(d, kToInteger)));
  const V up = hn::BitCast(d, hn::ShiftLeft<23>(n));
  const auto down_exponent = hn::Max(hn::Sub(hn::Set(di, 250), n), hn::Zero(di));
  const V down = hn::BitCast(d, hn::ShiftLeft<23>(down_exponent));
  const V sum = hn::Add(up, down), difference = hn::Sub(up, down);
  if constexpr (kCosh) {
    return hn::Add(up, hn::MulAdd(difference, s, hn::MulAdd(sum, c, down)));
  } else {
    return hn::Add(difference, hn::MulAdd(sum, s, hn::Mul(difference, c)));
  }
}

template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Sinh(D d, V x) {
  const V half = HalfHyperbolic<false>(d, x);
  const V y = hn::CopySignToAbs(hn::Add(half, half), x);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-12f)), x, y);
}

template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Cosh(D d, V x) {
  const V half = HalfHyperbolic<true>(d, x);
  return hn::Add(half, half);
}

// 1 / (1 + e^-x) as 2^-32 / (2^-32 + 2^-32 e^-x), whose divisor neither overflows nor underflows. With
// -x = n ln 2 - r that is 2^(n - 32) + (2^-32 - 2^(n - 32) (1 - e^-r)).
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Sigmoid(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V unit = hn::Set(d, 0x1p-32f);
  const V clamped = AtLeast(d, AtMost(d, x, 30.0f), -105.0f);  // beyond which the result is 1, or 0
  const V magic = hn::Set(d, kToInteger + 127.0f - 32.0f);
  const V shifted = hn::NegMulAdd(clamped, hn::Set(d, 0x1.715476p0f), magic);
  const V r = SubtractLn2s(d, clamped, hn::Sub(magic, shifted));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return Quotient(d, unit, hn::Add(power, hn::NegMulAdd(power, MinusExpTail(d, r), unit)));
}

// (1 - z) / (1 + z) with z = e^-2|x| = 2^-n (1 - 2 u), where |x| = n ln(2) / 2 + r, so that nothing cancels:
// (1 - 2^-n + 2 2^-n u) / (1 + 2^-n - 2 2^-n u), both halved. u = (1 - e^-2r) / 2 is a polynomial, absolute
// error 2^-29.2. A NaN propagates through the quotient.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Tanh(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V half = hn::Set(d, 0.5f);
  const V a = AtMost(d, hn::Abs(x), 9.1f);  // beyond which the result is 1
  const V magic = hn::Set(d, kToInteger + 127.0f);
  const V shifted = hn::NegMulAdd(a, hn::Set(d, 0x1.715476p1f), magic);
  const V r = hn::NegMulAdd(hn::Sub(magic, shifted), hn::Set(d, 0x1.62e43p-2f), a);
  const V s = hn::Mul(r, r);
  const V high = hn::NegMulAdd(r, hn::Set(d, 0x1.123abap-3f), hn::Set(d, 0x1.5554cep-2f));
  const V low = hn::NegMulAdd(r, hn::Set(d, 0x1.55549p-1f), hn::Set(d, 1.0f));
  const V q = hn::MulAdd(s, hn::MulAdd(s, hn::Set(d, 0x1.6d6baap-5f), high), low);
  const V u = hn::NegMulAdd(s, q, r);
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const V dividend = hn::MulAdd(power, u, hn::NegMulAdd(power, half, half));
  const V divisor = hn::NegMulAdd(power, u, hn::MulAdd(power, half, half));
  return Quotient(d, hn::CopySignToAbs(dividend, x), divisor);
}
