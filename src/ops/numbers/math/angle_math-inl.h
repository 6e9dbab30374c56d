// Functions of angles. Included inside a namespace: see math-inl.h and lane_math.h.

// pi / 2 in three words.
inline constexpr float kQuarterTurn = 0x1.921fb4p0f;
inline constexpr float kQuarterTurnMiddle = 0x1.4442dp-24f;
inline constexpr float kQuarterTurnLow = 0x1.846988p-48f;

// The number of quarter turns nearest to a >= 0, as an integer in the low bits of the result and as a float
// in count.
template <class D, class V>
ANYDML_MATH V CountQuarterTurns(D d, V a, V& count) {
  const V magic = hn::Set(d, kToInteger);
  const V shifted = hn::MulAdd(a, hn::Set(d, 0x1.45f306p-1f), magic);
  count = hn::Sub(shifted, magic);
  return shifted;
}

// `yes` in lanes where the last bit of n is set.
template <class D, class I, class V>
ANYDML_MATH V IfOddThenElse(D d, I n, V yes, V no) {
  const hn::RebindToSigned<D> di;
  return hn::IfThenElse(hn::RebindMask(d, hn::Lt(hn::ShiftLeft<31>(n), hn::Zero(di))), yes, no);
}

// sin(|x| + kQuarters * pi / 2), with the sign of x for the sine itself. kSmall: no lane is a large angle or
// a NaN.
template <int kQuarters, bool kSmall = false, class D, class V>
ANYDML_MATH V SinFrom(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V a = hn::Abs(x);
  V count;
  auto n = hn::BitCast(di, CountQuarterTurns(d, a, count));
  V r = ExactNegMulAdd(d, count, hn::Set(d, kQuarterTurn), a);
  r = ExactNegMulAdd(d, count, hn::Set(d, kQuarterTurnMiddle), r);
  r = hn::NegMulAdd(count, hn::Set(d, kQuarterTurnLow), r);
  if constexpr (!kSmall) {
    const auto large = hn::Ge(a, hn::Set(d, lane::kLargeAngle));
    if (ANYDML_MATH_UNLIKELY(!hn::AllFalse(d, large))) {
      V low = r;
      ReduceLargeAngles(d, a, r, low, n);
    }
  }
  if constexpr (kQuarters != 0) n = hn::Add(n, hn::Set(di, kQuarters));
  // Both functions for |r| <= pi / 4: sine with relative error 2^-27.90, and cosine with 2^-32.99.
  const V s = hn::Mul(r, r);
  V p = hn::MulAdd(s, hn::Set(d, -0x1.995300p-13f), hn::Set(d, 0x1.110776p-7f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.555546p-3f));
  const V sine = hn::MulAdd(hn::Mul(r, s), p, r);
  V q = hn::MulAdd(s, hn::Set(d, 0x1.99e904p-16f), hn::Set(d, -0x1.6c0c2ap-10f));
  q = hn::MulAdd(s, q, hn::Set(d, 0x1.55554ap-5f));
  q = hn::MulAdd(s, q, hn::Set(d, -0.5f));
  const V cosine = hn::MulAdd(s, q, hn::Set(d, 1.0f));
  const V y = IfOddThenElse(d, n, cosine, sine);
  V sign = hn::BitCast(d, hn::ShiftLeft<30>(n));
  if constexpr (kQuarters == 0) sign = hn::Xor(sign, x);
  return hn::Xor(y, hn::And(sign, hn::Set(d, -0.0f)));
}

template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Sin(D d, V x) {
  return SinFrom<0>(d, x);
}

// True if none of four vectors has a large angle or a NaN; may be false without need.
template <class D, class V>
ANYDML_MATH bool AreSmallAngles(D d, V a, V b, V c, V e) {
  const V squares = hn::MulAdd(e, e, hn::MulAdd(c, c, hn::MulAdd(b, b, hn::Mul(a, a))));
  return hn::AllTrue(d, hn::Lt(squares, hn::Set(d, lane::kLargeAngle * lane::kLargeAngle)));
}

template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Cos(D d, V x) {
  return SinFrom<1>(d, x);
}

// tan(r) or -1 / tan(r) for |r| <= pi / 4; tan(r) is in two words, as r is; relative error 2^-25.7.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Tan(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V a = hn::Abs(x);
  V count;
  auto n = hn::BitCast(di, CountQuarterTurns(d, a, count));
  const V exact = ExactNegMulAdd(d, count, hn::Set(d, kQuarterTurn), a);
  const V middle = hn::Set(d, kQuarterTurnMiddle);
  const V product = hn::Mul(count, middle);
  V r = hn::Sub(exact, product);
  const V lost = hn::Sub(hn::Sub(hn::Sub(exact, r), product), ProductError(d, count, middle, product));
  V low = hn::NegMulAdd(count, hn::Set(d, kQuarterTurnLow), lost);
  const auto large = hn::Ge(a, hn::Set(d, lane::kLargeAngle));
  if (ANYDML_MATH_UNLIKELY(!hn::AllFalse(d, large))) ReduceLargeAngles(d, a, r, low, n);
  const V s = hn::Mul(r, r);
  V p = hn::MulAdd(s, hn::Set(d, 0x1.33d1d2p-7f), hn::Set(d, 0x1.97094p-9f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.9069dcp-6f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.b5860cp-5f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.112de6p-3f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.5554dep-2f));
  // The derivative at r is 1 + tan(r)^2, nearly 1 + s.
  const V more = hn::Add(hn::Mul(hn::Mul(r, s), p), hn::MulAdd(low, s, low));
  const V tangent = hn::Add(r, more);
  const V tangent_low = hn::Add(hn::Sub(r, tangent), more);
  const V q = hn::Div(hn::Set(d, -1.0f), tangent);
  const V rest =
      hn::NegMulAdd(hn::Neg(q), tangent_low, ExactNegMulAdd(d, hn::Neg(q), tangent, hn::Set(d, 1.0f)));
  const V y = IfOddThenElse(d, n, hn::MulAdd(q, rest, q), tangent);
  return hn::Xor(y, hn::And(x, hn::Set(d, -0.0f)));
}
