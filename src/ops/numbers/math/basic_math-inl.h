// Shared by the functions. Included inside a namespace: see math-inl.h and lane_math.h.

// Adding this rounds to an integer, which stays in the low bits.
inline constexpr float kToInteger = 0x1.8p23f;

// Replaces any NaN by the canonical one, 0x7FC00000.
template <class D, class V = hn::Vec<D>>
ANYDML_MATH V Canonical(D d, V x) {
  if constexpr (kScales<D>) return ReplaceNans(x, hn::Set(d, lane::kNan));
  return hn::IfThenElse(hn::IsNaN(x), hn::Set(d, lane::kNan), x);
}

// a * b - product, exactly; product is the rounded product of a and b (and nothing underflows).
template <class D, class V>
ANYDML_MATH V ProductError(D d, V a, V b, V product) {
  if constexpr (kFused) {
    return hn::MulSub(a, b, product);
  } else {
    const V top = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0xFFFFF000u));
    const V a_high = hn::And(a, top), b_high = hn::And(b, top);
    const V a_low = hn::Sub(a, a_high), b_low = hn::Sub(b, b_high);
    const V crossed = hn::Add(hn::Add(hn::Sub(hn::Mul(a_high, b_high), product), hn::Mul(a_high, b_low)),
                              hn::Mul(a_low, b_high));
    return hn::Add(crossed, hn::Mul(a_low, b_low));
  }
}

// add - mul * x with an exact product, also on targets without FMA.
template <class D, class V>
ANYDML_MATH V ExactNegMulAdd(D d, V mul, V x, V add) {
  if constexpr (kFused) {
    return hn::NegMulAdd(mul, x, add);
  } else {
    const V product = hn::Mul(mul, x);
    return hn::Sub(hn::Sub(add, product), ProductError(d, mul, x, product));
  }
}

// The same for mul * x + add with a small add.
template <class D, class V>
ANYDML_MATH V ExactMulAdd(D d, V mul, V x, V add) {
  if constexpr (kFused) {
    return hn::MulAdd(mul, x, add);
  } else {
    const V product = hn::Mul(mul, x);
    return hn::Add(product, hn::Add(ProductError(d, mul, x, product), add));
  }
}

// 2^n as a product; shifted is n + kToInteger + 254 with n in [-252, 252]. The two powers of two with half
// the exponent reach from subnormals to infinity, which one factor would not.
template <class D, class V>
ANYDML_MATH V TwoPowers(D d, V shifted, V& other) {
  const hn::RebindToSigned<D> di;
  const auto n = hn::BitCast(di, shifted);
  const auto half = hn::ShiftRight<1>(n);
  other = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(n, half)));
  return hn::BitCast(d, hn::ShiftLeft<23>(half));
}

// a + b = result + low, exactly.
template <class D, class V>
ANYDML_MATH V SumInTwo(D, V a, V b, V& low) {
  const V sum = hn::Add(a, b);
  const V of_b = hn::Sub(sum, a);
  low = hn::Add(hn::Sub(a, hn::Sub(sum, of_b)), hn::Sub(b, of_b));
  return sum;
}

// sqrt(square + square_low) = result + low; square is positive.
template <class D, class V>
ANYDML_MATH V SqrtInTwo(D d, V square, V square_low, V& low) {
  const V root = hn::Sqrt(square);
  const V rest = hn::Add(ExactNegMulAdd(d, root, root, square), square_low);
  low = hn::Div(rest, hn::Add(root, root));
  return root;
}

// a b c for |b c| < 2^-100, where b c may underflow although the product of all three does not. The smaller
// of b and c takes 2^150 and is a normal number then, as is b c unless the result is 0.
template <class D, class V>
ANYDML_MATH V TimesTinyProduct(D d, V a, V b, V c) {
  const V power = hn::Set(d, 0x1p75f), inverse = hn::Set(d, 0x1p-75f), one = hn::Set(d, 1.0f);
  const auto b_is_larger = hn::Gt(hn::Abs(b), hn::Abs(c));
  const V larger = hn::IfThenElse(b_is_larger, b, c), smaller = hn::IfThenElse(b_is_larger, c, b);
  const V product = hn::Mul(hn::Mul(hn::Mul(smaller, power), power), larger);
  // Half of the power is taken back before a large a can make the product overflow, and after a small one.
  const auto a_is_large = hn::Gt(hn::Abs(a), one);
  const V all = hn::Mul(hn::Mul(a, hn::IfThenElse(a_is_large, inverse, one)), product);
  return hn::Mul(hn::Mul(all, hn::IfThenElse(a_is_large, one, inverse)), inverse);
}
