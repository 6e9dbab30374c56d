// Remainders. Included inside a namespace: see math-inl.h and lane_math.h.

// x - y trunc(x / y), exactly, as C's fmod.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Fmod(D d, V x, V y) {
  const V a = hn::Abs(x), b = hn::Abs(y);
  V quotient = hn::Trunc(hn::Div(a, b));
  if constexpr (!kFused) {  // a quotient that is 1 too large makes the product with the largest number
                            // infinite
    const auto infinite = hn::Ge(hn::Mul(quotient, b), hn::Set(d, lane::kInfinity));
    quotient = hn::IfThenElse(infinite, hn::Sub(quotient, hn::Set(d, 1.0f)), quotient);
  }
  // Rounding may make the quotient 1 too large; then the remainder is negative. It is exact in either case.
  V rest = ExactNegMulAdd(d, quotient, b, a);
  rest = hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, b), rest);
  rest = hn::IfThenElse(hn::Lt(a, b), a, rest);
  const auto large = hn::Gt(quotient, hn::Set(d, lane::kLargeQuotient));
  if (ANYDML_MATH_UNLIKELY(!hn::AllFalse(d, large))) FmodOfLarge(d, a, b, quotient, rest);
  return hn::CopySign(rest, x);
}
