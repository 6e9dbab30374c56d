// Inverses of trigonometric and hyperbolic functions. Included inside a namespace: see math-inl.h and
// lane_math.h.

// asin(y) for |y| <= kAsinNear0, with s = y^2; relative error 2^-25.69. Beyond that, asin(a) is pi / 2 - 2
// asin(sqrt((1 - a) / 2)), and that asin is below 1/2, where numbers are denser than above.
inline constexpr float kAsinNear0 = 0.55f;

template <class D, class V>
ANYDML_MATH V AsinNear0(D d, V y, V s) {
  V p = hn::MulAdd(s, hn::Set(d, 0x1.92e5eap-5f), hn::Set(d, 0x1.45ebc6p-6f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.7bd41ap-5f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.32b57cp-4f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.5556bcp-3f));
  return hn::MulAdd(hn::Mul(y, s), p, y);
}

template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Asin(D d, V x) {
  const V a = hn::Abs(x);
  const V half = hn::Set(d, 0.5f);
  const auto large = hn::Gt(a, hn::Set(d, kAsinNear0));
  const V s = hn::IfThenElse(large, hn::NegMulAdd(a, half, half), hn::Mul(a, a));
  const V y = AsinNear0(d, hn::IfThenElse(large, hn::Sqrt(s), a), s);
  const V far = hn::Sub(hn::Set(d, 0x1.921fb6p0f), hn::Sub(hn::Add(y, y), hn::Set(d, -0x1.777a5cp-25f)));
  return hn::CopySign(hn::IfThenElse(large, far, y), x);
}

// Likewise acos(x) = 2 asin(sqrt((1 - x) / 2)) for large x, and pi minus that for -x.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Acos(D d, V x) {
  const V a = hn::Abs(x);
  const V half = hn::Set(d, 0.5f);
  const auto large = hn::Gt(a, hn::Set(d, kAsinNear0));
  const auto negative = hn::Lt(x, hn::Zero(d));
  const V s = hn::IfThenElse(large, hn::NegMulAdd(a, half, half), hn::Mul(a, a));
  V y = AsinNear0(d, hn::IfThenElse(large, hn::Sqrt(s), x), s);
  y = hn::IfThenElse(large, hn::Add(y, y), y);
  // The minuend, in two words.
  const V from = hn::IfThenElse(large, hn::Set(d, 0x1.921fb6p1f), hn::Set(d, 0x1.921fb6p0f));
  const V from_low = hn::IfThenElse(large, hn::Set(d, -0x1.777a5cp-24f), hn::Set(d, -0x1.777a5cp-25f));
  const V subtracted = hn::Sub(from, hn::Sub(y, from_low));
  return hn::IfThenElse(hn::AndNot(negative, large), y, subtracted);
}

// atan(t) for 0 <= t <= 1, relative error 2^-28.5.
template <class D, class V>
ANYDML_MATH V AtanUpTo1(D d, V t) {
  const V s = hn::Mul(t, t);
  V p = hn::MulAdd(s, hn::Set(d, -0x1.d49a3ap-10f), hn::Set(d, 0x1.64c2ccp-7f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.fdfce4p-6f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.da5f2p-5f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.58156cp-4f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.c08f66p-4f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.2420b6p-3f));
  p = hn::MulAdd(s, p, hn::Set(d, 0x1.9991e6p-3f));
  p = hn::MulAdd(s, p, hn::Set(d, -0x1.55553ep-2f));
  return hn::MulAdd(hn::Mul(t, s), p, t);
}

template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Atan(D d, V x) {
  const V a = hn::Abs(x);
  const auto large = hn::Gt(a, hn::Set(d, 1.0f));
  const V y = AtanUpTo1(d, hn::IfThenElse(large, hn::Div(hn::Set(d, 1.0f), a), a));
  const V far = hn::Sub(hn::Set(d, 0x1.921fb6p0f), hn::Sub(y, hn::Set(d, -0x1.777a5cp-25f)));
  return hn::CopySign(hn::IfThenElse(large, far, y), x);
}

// The angle of the point (x, y), as C's atan2.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Atan2(D d, V y, V x) {
  const hn::RebindToSigned<D> di;
  const V ay = hn::Abs(y), ax = hn::Abs(x);
  const auto steep = hn::Gt(ay, ax);
  const V larger = hn::IfThenElse(steep, ay, ax);
  const V smaller = hn::IfThenElse(steep, ax, ay);
  // 1 for two infinities, 0 for two zeros.
  const V of_equals = hn::IfThenElseZero(hn::Ne(larger, hn::Zero(d)), hn::Set(d, 1.0f));
  const V t = hn::IfThenElse(hn::Eq(smaller, larger), of_equals, hn::Div(smaller, larger));
  V angle = AtanUpTo1(d, t);
  angle = hn::IfThenElse(
      steep, hn::Sub(hn::Set(d, 0x1.921fb6p0f), hn::Sub(angle, hn::Set(d, -0x1.777a5cp-25f))), angle);
  const auto left = hn::RebindMask(d, hn::Lt(hn::BitCast(di, x), hn::Zero(di)));
  angle = hn::IfThenElse(
      left, hn::Sub(hn::Set(d, 0x1.921fb6p1f), hn::Sub(angle, hn::Set(d, -0x1.777a5cp-24f))), angle);
  return hn::CopySign(angle, y);
}

// ln(2 a) for large a: asinh and acosh without their small terms.
template <class D, class V>
ANYDML_MATH V LogOfDouble(D d, V a) {
  const V log = hn::Add(LogOfTwo(d, a, hn::Zero(d)), hn::Set(d, 0x1.62e43p-1f));
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, lane::kInfinity)), log, a);
}

// ln(a + sqrt(a^2 + 1)), the sum in two words.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Asinh(D d, V x) {
  const V a = hn::Abs(x);
  const V clamped = AtMost(d, a, 0x1p20f);
  const V square = hn::Mul(clamped, clamped);
  V low, root_low;
  const V above = SumInTwo(d, hn::Set(d, 1.0f), square, low);
  low = hn::Add(low, ProductError(d, clamped, clamped, square));
  const V root = SqrtInTwo(d, above, low, root_low);
  const V sum = hn::Add(root, clamped);
  low = hn::Add(hn::Sub(clamped, hn::Sub(sum, root)), root_low);
  V y = LogOfTwo(d, sum, low);
  y = hn::IfThenElse(hn::Gt(a, clamped), LogOfDouble(d, a), y);
  y = hn::IfThenElse(hn::Lt(a, hn::Set(d, 0x1p-12f)), a, y);
  return hn::CopySign(hn::IfThenElse(hn::IsNaN(x), x, y), x);
}

// ln(x + sqrt(x^2 - 1)), the sum in two words.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Acosh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V clamped = AtMost(d, x, 0x1p20f);
  const V more = hn::Sub(clamped, one);  // x - 1
  V low, root_low;
  const V factor = SumInTwo(d, clamped, one, low);
  const V square = hn::Mul(more, factor);
  low = hn::MulAdd(more, low, ProductError(d, more, factor, square));
  const V root = SqrtInTwo(d, AtLeast(d, square, 0x1p-60f), low, root_low);
  const V sum = hn::Add(clamped, root);
  low = hn::Add(hn::Sub(root, hn::Sub(sum, clamped)), root_low);
  V y = LogOfTwo(d, sum, low);
  y = hn::IfThenElse(hn::Gt(x, clamped), LogOfDouble(d, x), y);
  y = hn::IfThenElse(hn::Gt(x, one), y, hn::Zero(d));
  return hn::IfThenElse(hn::Ge(x, one), y, hn::Set(d, lane::kNan));
}

// ln(1 + 2 a / (1 - a)) / 2, the quotient in two words.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Atanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V a = hn::Abs(x);
  const V twice = hn::Add(a, a);
  V below_low, low;
  const V below = SumInTwo(d, one, hn::Neg(a), below_low);
  const V q = hn::Div(twice, below);
  const V rest = hn::NegMulAdd(q, below_low, ExactNegMulAdd(d, q, below, twice));
  const V sum = SumInTwo(d, one, q, low);
  V y = hn::Mul(LogOfTwo(d, sum, hn::Add(low, hn::Div(rest, below))), hn::Set(d, 0.5f));
  y = hn::IfThenElse(hn::Lt(a, hn::Set(d, 0x1p-12f)), a, y);
  // If 1 - a is 0, 1 / 0 is the pole.
  y = hn::IfThenElse(hn::Lt(a, one), y, hn::Div(one, below));
  const V nan = hn::Set(d, lane::kNan);
  return hn::CopySign(hn::IfThenElse(hn::Le(a, one), y, nan), x);
}
