// The bodies of the element functions, in Highway's vocabulary (hn): vectors of a Highway target, or one lane
// (lane.h). Included inside a namespace that defines `hn` and `math` (math-inl.h's functions): see
// ../numbers/element_loops-inl.h and lane_functions.h.
//
// A body is struct Name { template <class D, class V> V Call(D d, V a[, V b[, V c]], const Instruction&) }. d
// is the tag of the sources' class. Sums and products that must be rounded separately are written Mul, Add;
// compilers may not contract them.

#define ANYDML_UNARY(name)                                               \
  struct name {                                                          \
    template <class D, class V = hn::Vec<D>>                             \
    static ANYDML_BODY V Call(D d, V a, const Instruction& instruction); \
  };                                                                     \
  template <class D, class V>                                            \
  ANYDML_BODY V name::Call([[maybe_unused]] D d, V a, [[maybe_unused]] const Instruction& instruction)

#define ANYDML_BINARY(name)                                                   \
  struct name {                                                               \
    template <class D, class V = hn::Vec<D>>                                  \
    static ANYDML_BODY V Call(D d, V a, V b, const Instruction& instruction); \
  };                                                                          \
  template <class D, class V>                                                 \
  ANYDML_BODY V name::Call([[maybe_unused]] D d, V a, V b, [[maybe_unused]] const Instruction& instruction)

#define ANYDML_TERNARY(name)                                                       \
  struct name {                                                                    \
    template <class D, class V = hn::Vec<D>>                                       \
    static ANYDML_BODY V Call(D d, V a, V b, V c, const Instruction& instruction); \
  };                                                                               \
  template <class D, class V>                                                      \
  ANYDML_BODY V name::Call([[maybe_unused]] D d, V a, V b, V c,                    \
                           [[maybe_unused]] const Instruction& instruction)

// Functions with a body in scalar_functions.h only.
#define ANYDML_DECLARE(name, ...) struct name;
ANYDML_ELEMENT_FUNCTIONS(ANYDML_DECLARE)
#undef ANYDML_DECLARE

// A parameter in every lane.
template <class D>
ANYDML_BODY hn::Vec<D> Parameter(D d, const Instruction& instruction, int i) {
  using T = hn::TFromD<D>;
  const auto bits = static_cast<uint32_t>(instruction.parameters[i]);
  if constexpr (std::is_floating_point_v<T>) {
    return hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), bits));
  } else {
    return hn::Set(d, static_cast<T>(bits));
  }
}

// 1 in lanes where the mask is set, as bits of the class's width.
template <class D, class M>
ANYDML_BODY hn::Vec<D> OneWhere(D d, M mask) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::IfThenElseZero(hn::RebindMask(du, mask), hn::Set(du, 1)));
}

template <class D, class V>
ANYDML_BODY auto IsNanMask(D, V x) {
  return hn::IsNaN(x);  // Ne is false for NaNs on some targets
}

template <class D>
ANYDML_BODY hn::Vec<D> QuietNan(D d) {
  return hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0x7FC00000u));
}

template <class D>
ANYDML_BODY hn::Vec<D> InfinityOf(D d) {
  return hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0x7F800000u));
}

// Which NaN an operation on NaNs returns depends on the machine: make it canonical. (With
// ANYDML_STORES_ONE_NAN, stores do that once for all preceding instructions; with ANYDML_KEEPS_NANS, a
// separate stage does.)
template <class D, class V>
ANYDML_BODY V OneNan([[maybe_unused]] D d, V x) {
#if !defined(ANYDML_STORES_ONE_NAN) && !defined(ANYDML_KEEPS_NANS)
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return math::Canonical(d, x);
  }
#endif
  return x;
}

// Highway has >= and <= for floating point only.
template <class D, class V>
ANYDML_BODY auto NotLess(D, V a, V b) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::Ge(a, b);
  } else {
    return hn::Not(hn::Lt(a, b));
  }
}

// The larger of two numbers, with +0 larger than -0. Of two zeros, Max may return either operand or +0,
// depending on the target; both operand orders together cover both. The result for a NaN is unspecified.
template <class V>
ANYDML_BODY V LargerNumberOf(V a, V b) {
  return hn::And(hn::Max(a, b), hn::Max(b, a));
}
template <class V>
ANYDML_BODY V SmallerNumberOf(V a, V b) {
  return hn::Or(hn::Min(a, b), hn::Min(b, a));
}

// The same; NaN if either is.
template <class D, class V>
ANYDML_BODY V LargerOf([[maybe_unused]] D d, V a, V b) {
#ifdef ANYDML_STORES_ONE_NAN
  return LargerNumber(a, b);
#else
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::IfThenElse(hn::Or(IsNanMask(d, a), IsNanMask(d, b)), QuietNan(d), LargerNumberOf(a, b));
  } else {
    return hn::Max(a, b);
  }
#endif
}
template <class D, class V>
ANYDML_BODY V SmallerOf([[maybe_unused]] D d, V a, V b) {
#ifdef ANYDML_STORES_ONE_NAN
  return SmallerNumber(a, b);
#else
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::IfThenElse(hn::Or(IsNanMask(d, a), IsNanMask(d, b)), QuietNan(d), SmallerNumberOf(a, b));
  } else {
    return hn::Min(a, b);
  }
#endif
}

template <class D, class V>
ANYDML_BODY V Clamped(D d, V x, V low, V high) {
#ifndef ANYDML_STORES_ONE_NAN
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    const V number = LargerNumberOf(low, SmallerNumberOf(x, high));
    const auto bound_is_nan = hn::Or(IsNanMask(d, low), IsNanMask(d, high));
    return hn::IfThenElse(hn::Or(IsNanMask(d, x), bound_is_nan), QuietNan(d), number);
  }
#endif
  return LargerOf(d, low, SmallerOf(d, x, high));  // `low` if low > high
}

// max(0, min(alpha x + beta, 1))
template <class D, class V>
ANYDML_BODY V HardSigmoidOf(D d, V x, const Instruction& instruction) {
  const V line = hn::Add(hn::Mul(Parameter(d, instruction, 0), x), Parameter(d, instruction, 1));
  return Clamped(d, line, hn::Zero(d), hn::Set(d, 1.0f));
}

// Arithmetic. Integers wrap: as unsigned numbers, since signed overflow is undefined, in vectors too.
template <class D>
using Wrapping = std::conditional_t<std::is_integral_v<hn::TFromD<D>>, hn::RebindToUnsigned<D>, D>;
template <class D, class V>
ANYDML_BODY V Sum(D d, V a, V b) {
  const Wrapping<D> dw;
  return hn::BitCast(d, hn::Add(hn::BitCast(dw, a), hn::BitCast(dw, b)));
}
template <class D, class V>
ANYDML_BODY V Difference(D d, V a, V b) {
  const Wrapping<D> dw;
  return hn::BitCast(d, hn::Sub(hn::BitCast(dw, a), hn::BitCast(dw, b)));
}
template <class D, class V>
ANYDML_BODY V Product(D d, V a, V b) {
  const Wrapping<D> dw;
  return hn::BitCast(d, hn::Mul(hn::BitCast(dw, a), hn::BitCast(dw, b)));
}

ANYDML_BINARY(Add) { return OneNan(d, Sum(d, a, b)); }
ANYDML_BINARY(Subtract) { return OneNan(d, Difference(d, a, b)); }
ANYDML_BINARY(Multiply) { return OneNan(d, Product(d, a, b)); }
ANYDML_BINARY(Divide) { return OneNan(d, hn::Div(a, b)); }
// Adds halves of the numbers if their sum overflows, and only then, because halves may underflow.
ANYDML_BINARY(Mean) {
  const V half = hn::Set(d, 0.5f);
  const V sum = hn::Add(a, b);
  const V of_halves = hn::MulAdd(a, half, hn::Mul(b, half));
  const auto overflown = hn::Eq(hn::Abs(sum), InfinityOf(d));
  return OneNan(d, hn::IfThenElse(overflown, of_halves, hn::Mul(sum, half)));
}
ANYDML_BINARY(Maximum) { return LargerOf(d, a, b); }
ANYDML_BINARY(Minimum) { return SmallerOf(d, a, b); }
ANYDML_BINARY(DifferenceSquare) {
  const V difference = Difference(d, a, b);
  return OneNan(d, Product(d, difference, difference));
}
ANYDML_BINARY(ModulusTruncate) { return OneNan(d, math::Fmod(d, a, b)); }
ANYDML_BINARY(ModulusFloor) {
  const V rest = math::Fmod(d, a, b);
  // The result has the divisor's sign: add the divisor if the remainder has the other one.
  const hn::RebindToSigned<D> di;
  const auto differs = hn::RebindMask(d, hn::Lt(hn::BitCast(di, hn::Xor(rest, b)), hn::Zero(di)));
  const auto some = hn::Ne(rest, hn::Zero(d));
  return OneNan(d, hn::IfThenElse(hn::And(differs, some), hn::Add(rest, b), rest));
}

ANYDML_UNARY(Abs) { return OneNan(d, hn::Abs(a)); }
ANYDML_UNARY(Negate) { return Difference(d, hn::Zero(d), a); }
ANYDML_UNARY(Sign) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T{1});
  if constexpr (std::is_unsigned_v<T>) {
    return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), hn::Zero(d), one);
  } else {
    const V negative = hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Set(d, T{-1}), hn::Zero(d));
    return hn::IfThenElse(hn::Gt(a, hn::Zero(d)), one, negative);
  }
}
ANYDML_UNARY(Reciprocal) { return OneNan(d, hn::Div(hn::Set(d, 1.0f), a)); }
ANYDML_UNARY(SquareRoot) { return OneNan(d, hn::Sqrt(a)); }
// Restores the argument's sign, which zeros lose in Highway 1.0 on x86-64 without SSE4.
ANYDML_UNARY(Ceil) { return OneNan(d, hn::CopySign(hn::Ceil(a), a)); }
ANYDML_UNARY(Floor) { return OneNan(d, hn::CopySign(hn::Floor(a), a)); }
ANYDML_UNARY(RoundHalfToEven) { return OneNan(d, hn::CopySign(hn::Round(a), a)); }
ANYDML_UNARY(RoundTowardZero) { return OneNan(d, hn::Trunc(a)); }
ANYDML_UNARY(RoundHalfAway) {
  // Half an ulp less than 1/2, so that the addition does not round 0.49999997 up to 1.
  const V half = hn::CopySignToAbs(hn::Set(d, 0.49999997f), a);
  return OneNan(d, hn::Trunc(hn::Add(a, half)));
}
ANYDML_UNARY(Canonical) { return OneNan(d, a); }
ANYDML_UNARY(ScaleBias) {
  return OneNan(d, Sum(d, Product(d, a, Parameter(d, instruction, 0)), Parameter(d, instruction, 1)));
}
ANYDML_UNARY(Clip) { return Clamped(d, a, Parameter(d, instruction, 0), Parameter(d, instruction, 1)); }
ANYDML_UNARY(Relu) {
#ifndef ANYDML_STORES_ONE_NAN
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::IfThenElse(IsNanMask(d, a), QuietNan(d), hn::IfThenElseZero(hn::Gt(a, hn::Zero(d)), a));
  }
#endif
  return LargerOf(d, a, hn::Zero(d));
}
ANYDML_UNARY(LeakyRelu) {
  const V scaled = hn::Mul(Parameter(d, instruction, 0), a);
  return OneNan(d, hn::IfThenElse(hn::Ge(a, hn::Zero(d)), a, scaled));
}
ANYDML_BINARY(ParameterizedRelu) {
  return OneNan(d, hn::IfThenElse(NotLess(d, a, hn::Zero(d)), a, Product(d, b, a)));
}
ANYDML_UNARY(ThresholdedRelu) { return hn::IfThenElseZero(hn::Gt(a, Parameter(d, instruction, 0)), a); }
ANYDML_UNARY(Shrink) {
  const V bias = Parameter(d, instruction, 0), threshold = Parameter(d, instruction, 1);
  const V below = hn::IfThenElseZero(hn::Lt(a, hn::Neg(threshold)), hn::Add(a, bias));
  return OneNan(d, hn::IfThenElse(hn::Gt(a, threshold), hn::Sub(a, bias), below));
}
ANYDML_UNARY(HardSigmoid) { return HardSigmoidOf(d, a, instruction); }
ANYDML_UNARY(HardSwish) { return OneNan(d, hn::Mul(a, HardSigmoidOf(d, a, instruction))); }
ANYDML_UNARY(Softsign) { return OneNan(d, hn::Div(a, hn::Add(hn::Set(d, 1.0f), hn::Abs(a)))); }
ANYDML_BINARY(ReluGrad) { return OneNan(d, hn::IfThenElseZero(hn::Gt(a, hn::Zero(d)), b)); }
ANYDML_BINARY(ClipGrad) {
  const auto outside =
      hn::Or(NotLess(d, Parameter(d, instruction, 0), a), NotLess(d, a, Parameter(d, instruction, 1)));
  return OneNan(d, hn::IfThenElse(outside, hn::Zero(d), b));
}
// clamp(round(a / b) + c): sums that are not integers are far outside the bounds.
ANYDML_TERNARY(Quantize) {
  const V quotient = hn::Round(hn::Div(a, b));
  const V whole = hn::IfThenElse(IsNanMask(d, quotient), hn::Zero(d), quotient);
  return Clamped(d, hn::Add(whole, c), Parameter(d, instruction, 0), Parameter(d, instruction, 1));
}
ANYDML_BINARY(Blend) {
  const V beta = Parameter(d, instruction, 0);
  return OneNan(d, hn::Add(hn::Mul(beta, a), hn::Mul(hn::Sub(hn::Set(d, 1.0f), beta), b)));
}
ANYDML_BINARY(BlendSquare) {
  const V beta = Parameter(d, instruction, 0);
  const V rest = hn::Mul(hn::Sub(hn::Set(d, 1.0f), beta), hn::Mul(b, b));
  return OneNan(d, hn::Add(hn::Mul(beta, a), rest));
}
// learning rate * a * b / (sqrt(c) + epsilon)
ANYDML_TERNARY(AdamUpdate) {
  const V rate = hn::Mul(Parameter(d, instruction, 0), a);
  return OneNan(d, hn::Div(hn::Mul(rate, b), hn::Add(hn::Sqrt(c), Parameter(d, instruction, 1))));
}

// Rounds to FLOAT16, to nearest even. Below 2^-14, adding 1/2 rounds at 2^-24, the spacing of subnormal
// halves.
template <class D, class V>
ANYDML_BODY V RoundedToHalf([[maybe_unused]] D d, V a) {
#ifdef ANYDML_STORES_ONE_NAN
  return ThroughHalf(a);
#else
  const hn::RebindToUnsigned<D> du;
  const auto magnitude = hn::Abs(a);
  const auto bits = hn::BitCast(du, magnitude);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1u));
  const auto rounded = hn::And(hn::Add(bits, hn::Add(odd, hn::Set(du, 0xFFFu))), hn::Set(du, 0xFFFFE000u));
  const V half = hn::Set(d, 0.5f);
  V result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-14f)), hn::Sub(hn::Add(magnitude, half), half),
                            hn::BitCast(d, rounded));
  result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 65520.0f)), result, InfinityOf(d));
  return hn::IfThenElse(IsNanMask(d, a), QuietNan(d), hn::CopySignToAbs(result, a));
#endif
}
ANYDML_UNARY(RoundToHalf) { return RoundedToHalf(d, a); }
ANYDML_UNARY(FloatBits) { return hn::IfThenElse(IsNanMask(d, a), QuietNan(d), a); }
ANYDML_UNARY(HalfBits) {
  const hn::RebindToUnsigned<D> du;
  const V rounded = RoundedToHalf(d, a);
  const V magnitude = hn::Abs(rounded);
  const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(du, rounded)), hn::Set(du, 0x8000u));
  const auto normal = hn::Sub(hn::ShiftRight<13>(hn::BitCast(du, magnitude)), hn::Set(du, 0x1C000u));
  const auto shifted = hn::BitCast(du, hn::Add(magnitude, hn::Set(d, 0.5f)));
  const auto subnormal = hn::Sub(shifted, hn::Set(du, 0x3F000000u));
  const auto is_subnormal = hn::RebindMask(du, hn::Lt(magnitude, hn::Set(d, 0x1p-14f)));
  const auto is_infinite = hn::RebindMask(du, hn::Gt(magnitude, hn::Set(d, 65504.0f)));
  auto half = hn::IfThenElse(is_subnormal, subnormal, normal);
  half = hn::IfThenElse(is_infinite, hn::Set(du, 0x7C00u), half);
  const auto is_nan = hn::RebindMask(du, IsNanMask(d, a));
  return hn::BitCast(d, hn::IfThenElse(is_nan, hn::Set(du, 0x7E00u), hn::Or(half, sign)));
}
// NaNs keep their payload, as in a load.
ANYDML_UNARY(HalfFromBits) {
  const hn::RebindToFloat<D> df;
  const V sign = hn::ShiftLeft<16>(hn::And(a, hn::Set(d, 0x8000u)));
  const V magnitude = hn::And(a, hn::Set(d, 0x7FFFu));
  const V special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(d, 0x7F800000u));
  const V normal = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(d, 0x38000000u));
  const auto shifted = hn::BitCast(df, hn::Add(magnitude, hn::Set(d, 0x3F000000u)));
  const V subnormal = hn::BitCast(d, hn::Sub(shifted, hn::Set(df, 0.5f)));
  V number = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x400u)), subnormal, normal);
  number = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x7C00u)), number, special);
  return hn::Or(number, sign);
}

// Logic. The result is 0 or 1 of the unsigned class.
ANYDML_BINARY(Equal) { return OneWhere(d, hn::Eq(a, b)); }
ANYDML_BINARY(Greater) { return OneWhere(d, hn::Gt(a, b)); }
ANYDML_BINARY(Less) { return OneWhere(d, hn::Lt(a, b)); }
ANYDML_BINARY(GreaterOrEqual) { return OneWhere(d, NotLess(d, a, b)); }
ANYDML_BINARY(LessOrEqual) { return OneWhere(d, NotLess(d, b, a)); }
ANYDML_UNARY(IsNan) { return OneWhere(d, IsNanMask(d, a)); }
ANYDML_UNARY(IsInfinity) {
  const V infinity = InfinityOf(d);
  const auto mode = static_cast<uint32_t>(instruction.parameters[0]);
  if (mode == 1) return OneWhere(d, hn::Eq(a, infinity));
  if (mode == 2) return OneWhere(d, hn::Eq(a, hn::Neg(infinity)));
  return OneWhere(d, hn::Eq(hn::Abs(a), infinity));
}
ANYDML_BINARY(LogicalAnd) { return OneWhere(d, hn::And(hn::Ne(a, hn::Zero(d)), hn::Ne(b, hn::Zero(d)))); }
ANYDML_BINARY(LogicalOr) { return OneWhere(d, hn::Ne(hn::Or(a, b), hn::Zero(d))); }
ANYDML_BINARY(LogicalXor) { return OneWhere(d, hn::Xor(hn::Ne(a, hn::Zero(d)), hn::Ne(b, hn::Zero(d)))); }
ANYDML_UNARY(LogicalNot) { return OneWhere(d, hn::Eq(a, hn::Zero(d))); }
ANYDML_TERNARY(Select) { return hn::IfThenElse(hn::Ne(a, hn::Zero(d)), b, c); }
ANYDML_BINARY(BitAnd) { return hn::And(a, b); }
ANYDML_BINARY(BitOr) { return hn::Or(a, b); }
ANYDML_BINARY(BitXor) { return hn::Xor(a, b); }
ANYDML_UNARY(BitNot) { return hn::Not(a); }
ANYDML_UNARY(MaskAnd) { return hn::And(a, Parameter(d, instruction, 0)); }
ANYDML_UNARY(MaskXor) { return hn::Xor(a, Parameter(d, instruction, 0)); }
