// Logarithms and powers. Included inside a namespace: see math-inl.h and lane_math.h.

// The logarithm's value for numbers that are not positive and finite; `log` for others.
template <class D, class V>
ANYDML_MATH V WithLogLimits(D d, V x, V log) {
  const V infinity = hn::Set(d, lane::kInfinity);
  const V nan = hn::Set(d, lane::kNan);
  const V at_or_below_0 = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), nan);
  const V positive = hn::IfThenElse(hn::Lt(x, infinity), log, x);
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), positive, at_or_below_0);
}

// x = 2^exponent * the result, for positive normal x; the result is at least the float with the bits `first`.
template <class D, class V>
ANYDML_MATH V SplitNormal(D d, V x, int32_t first, V& exponent) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto n = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, first)));
  exponent = hn::ConvertTo(d, n);
  return hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(n)));
}

// The same, also for subnormal x unless kNormal.
template <bool kNormal, class D, class V>
ANYDML_MATH V SplitPositive(D d, V x, int32_t first, V& exponent) {
  if constexpr (kNormal) return SplitNormal(d, x, first, exponent);
  const auto tiny = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V normal = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p24f)), x);
  const V m = SplitNormal(d, normal, first, exponent);
  exponent = hn::Sub(exponent, hn::IfThenElseZero(tiny, hn::Set(d, 24.0f)));
  return m;
}

inline constexpr int32_t kBitsOf2Thirds = 0x3F2AAAAB;
inline constexpr int32_t kBitsOfSqrtHalf = 0x3F3504F3;

// ln(1 + f) for |f| <= 1/3, relative error 2^-27.7.
template <class D, class V>
ANYDML_MATH V LogNear1(D d, V f) {
  const V s = hn::Mul(f, f);
  const V high = hn::MulAdd(f, hn::Set(d, 0x1.1e72ap-3f), hn::Set(d, -0x1.f33c0cp-4f));
  V q = hn::MulAdd(s, hn::Set(d, -0x1.07ab66p-3f), high);
  q = hn::MulAdd(s, q, hn::MulAdd(f, hn::Set(d, 0x1.1ed452p-3f), hn::Set(d, -0x1.559c3p-3f)));
  q = hn::MulAdd(s, q, hn::MulAdd(f, hn::Set(d, 0x1.99d05cp-3f), hn::Set(d, -0x1.fffefap-3f)));
  q = hn::MulAdd(s, q, hn::MulAdd(f, hn::Set(d, 0x1.555506p-2f), hn::Set(d, -0.5f)));
  return hn::MulAdd(s, q, f);
}

// Whether all of four vectors are positive, normal and finite.
template <class D, class V>
ANYDML_MATH bool ArePositiveNormals(D, V a, V b, V c, V e) {
  const hn::RebindToUnsigned<D> du;
  const auto least = hn::Set(du, 0x00800000u);  // smaller numbers wrap around
  const auto ab = hn::Max(hn::Sub(hn::BitCast(du, a), least), hn::Sub(hn::BitCast(du, b), least));
  const auto ce = hn::Max(hn::Sub(hn::BitCast(du, c), least), hn::Sub(hn::BitCast(du, e), least));
  return hn::AllTrue(du, hn::Lt(hn::Max(ab, ce), hn::Set(du, 0x7F000000u)));
}

// For such numbers only (kNormal), a third of the instructions is omitted. NaNs become canonical.
template <bool kNormal = false, class D, class V = hn::Vec<D>>
ANYDML_MATH V Log(D d, V x) {
  V n;
  const V m = SplitPositive<kNormal>(d, x, kBitsOf2Thirds, n);
  const V near1 = LogNear1(d, hn::Sub(m, hn::Set(d, 1.0f)));
  const V log = hn::MulAdd(n, hn::Set(d, 0x1.62e43p-1f), near1);
  if constexpr (kNormal) return log;
  return WithLogLimits(d, x, log);
}

// ln(high + low) for normal high and small low.
template <class D, class V>
ANYDML_MATH V LogOfTwo(D d, V high, V low) {
  const hn::RebindToSigned<D> di;
  V n;
  const V m = SplitNormal(d, high, kBitsOf2Thirds, n);
  // 2^-n as 2^(1 - n) / 2, which does not overflow. The power of two is the quotient of high and m.
  const auto power = hn::Sub(hn::Set(di, 0x40000000), hn::Sub(hn::BitCast(di, high), hn::BitCast(di, m)));
  const V scaled = hn::Mul(hn::Mul(low, hn::BitCast(d, power)), hn::Set(d, 0.5f));
  const V log = LogNear1(d, hn::Add(hn::Sub(m, hn::Set(d, 1.0f)), scaled));
  return hn::MulAdd(n, hn::Set(d, 0x1.62e43p-1f), log);
}

// ln(1 + x)
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Log1p(D d, V x) {
  V low;
  const V high = SumInTwo(d, hn::Set(d, 1.0f), x, low);
  return hn::CopySign(WithLogLimits(d, high, LogOfTwo(d, high, low)), x);
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e), e = e^-|x|. The second term is computed as the logarithm of 1 + e,
// either with f = e or with f = (e - 1) / 2, whichever is small enough.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Softplus(D d, V x) {
  const V half = hn::Set(d, 0.5f);
  const V e = ExpInRange(d, AtLeast(d, hn::Neg(hn::Abs(x)), -104.0f));
  const auto large = hn::Gt(e, hn::Set(d, 0x1.555556p-2f));
  const V log = LogNear1(d, hn::IfThenElse(large, hn::MulSub(e, half, half), e));
  const V above = hn::Add(log, hn::IfThenElseZero(large, hn::Set(d, 0x1.62e43p-1f)));
  return hn::Add(hn::ZeroIfNegative(x), above);
}

// log2(x) = high + low for positive finite x, with a relative error of about 2^-30: with q = (m - 1) / (m +
// 1), log2(m) = 2 / ln(2) (q + q^3 / 3 + q^5 / 5 + ...), the first term in two words.
template <bool kNormal, class D, class V>
ANYDML_MATH V Log2InTwo(D d, V x, V& low) {
  V n;
  const V m = SplitPositive<kNormal>(d, x, kBitsOfSqrtHalf, n);
  const V one = hn::Set(d, 1.0f);
  const V f = hn::Sub(m, one);
  const V sum = hn::Add(m, one);
  const V sum_low = hn::Sub(m, hn::Sub(sum, one));
  const V inverse = Inverse(d, sum);
  const V q = hn::Mul(f, inverse);
  const V q_low = hn::Mul(hn::NegMulAdd(q, sum_low, ExactNegMulAdd(d, q, sum, f)), inverse);
  const V s = hn::Mul(q, q);
  V t = hn::MulAdd(s, hn::Set(d, 0x1.58af76p-2f), hn::Set(d, 0x1.a5cedap-2f));
  t = hn::MulAdd(s, t, hn::Set(d, 0x1.2776e2p-1f));
  t = hn::MulAdd(s, t, hn::Set(d, 0x1.ec709ep-1f));
  const V c = hn::Set(d, 0x1.715476p1f);  // 2 / ln 2; the next constant is its rounding error
  const V c_low = hn::Set(d, 0x1.4ae0c0p-25f);
  const V first = hn::Mul(q, c);
  const V slope = hn::MulAdd(s, c, c);  // the derivative at q, nearly
  V rest = hn::MulAdd(q, c_low, hn::MulAdd(q_low, slope, ProductError(d, q, c, first)));
  rest = hn::MulAdd(hn::Mul(q, s), t, rest);
  const V leading = hn::Add(n, first);
  rest = hn::Add(hn::Add(hn::Sub(n, leading), first), rest);
  const V high = hn::Add(leading, rest);
  low = hn::Add(hn::Sub(leading, high), rest);
  return high;
}

// 2^(z + z_low)
template <class D, class V>
ANYDML_MATH V Exp2InTwo(D d, V z, V z_low) {
  const V clamped = AtLeast(d, AtMost(d, z, 129.0f), -151.0f);
  const V small = hn::IfThenElseZero(hn::Eq(clamped, z), z_low);
  const V magic = hn::Set(d, kToInteger + 254.0f);
  const V shifted = hn::Add(clamped, magic);
  const V n = hn::Sub(shifted, magic);
  const V f = hn::Add(hn::Sub(clamped, n), small);
  V g = hn::MulAdd(f, hn::Set(d, 0x1.417284p-13f), hn::Set(d, 0x1.5f0976p-10f));
  g = hn::MulAdd(f, g, hn::Set(d, 0x1.3b2ddap-7f));
  g = hn::MulAdd(f, g, hn::Set(d, 0x1.c6af7ap-5f));
  g = hn::MulAdd(f, g, hn::Set(d, 0x1.ebfbdcp-3f));
  g = hn::MulAdd(f, g, hn::Set(d, 0x1.62e43p-1f));
  const V y = hn::MulAdd(f, g, hn::Set(d, 1.0f));
  if constexpr (kScales<D>) {
    return Scale(y, n);
  } else {
    V other_power;
    const V power = TwoPowers(d, shifted, other_power);
    return hn::Mul(hn::Mul(y, power), other_power);
  }
}

// a^y for positive, finite a; kNormal: and normal.
template <bool kNormal, class D, class V>
ANYDML_MATH V PowOfPositive(D d, V a, V y) {
  V low;
  const V high = Log2InTwo<kNormal>(d, a, low);
  // Beyond this, 2^(y log2 a) is 0, 1 or infinity.
  const V exponent = AtLeast(d, AtMost(d, y, 0x1p33f), -0x1p33f);
  const V z = hn::Mul(exponent, high);
  return Exp2InTwo(d, z, hn::MulAdd(exponent, low, ProductError(d, exponent, high, z)));
}

// x^y as C's pow. NaNs become canonical.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Pow(D d, V x, V y) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const V infinity = hn::Set(d, lane::kInfinity);
  const V a = hn::Abs(x);
  V power = PowOfPositive<false>(d, a, y);
  // The rest, a third of the instructions, handles NaNs and bases that are not positive, normal and finite.
  if constexpr (kLooksAtLanes) {
    const auto base = hn::And(hn::Ge(x, hn::Set(d, 0x1p-126f)), hn::Lt(x, infinity));
    if (hn::AllTrue(d, hn::And(base, hn::Eq(y, y)))) return power;
  }
  const V at_end = hn::IfThenElse(hn::Xor(hn::Gt(a, one), hn::Lt(y, zero)), infinity, zero);
  power = hn::IfThenElse(hn::Or(hn::Eq(a, zero), hn::Eq(a, infinity)), at_end, power);
  const V half = hn::Mul(y, hn::Set(d, 0.5f));
  const auto whole = hn::Eq(hn::Trunc(y), y);
  const auto odd = hn::And(whole, hn::Ne(hn::Trunc(half), half));
  power = hn::Xor(power, hn::IfThenElseZero(odd, hn::And(x, hn::Set(d, -0.0f))));
  const auto root = hn::AndNot(whole, hn::And(hn::Lt(x, zero), hn::Lt(a, infinity)));
  const auto nan = hn::Or(root, hn::Or(hn::IsNaN(x), hn::IsNaN(y)));
  power = hn::IfThenElse(nan, hn::Set(d, lane::kNan), power);
  return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), one, power);
}
