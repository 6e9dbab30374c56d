// The bodies of the functions that are not exact, based on math-inl.h. Included as functions-inl.h, after it.

ANYDML_UNARY(Exp) { return OneNan(d, math::Exp(d, a)); }
ANYDML_UNARY(Log) { return math::Log(d, a); }
ANYDML_UNARY(Sin) { return OneNan(d, math::Sin(d, a)); }
ANYDML_UNARY(Cos) { return OneNan(d, math::Cos(d, a)); }
ANYDML_UNARY(Tan) { return OneNan(d, math::Tan(d, a)); }
ANYDML_UNARY(Asin) { return OneNan(d, math::Asin(d, a)); }
ANYDML_UNARY(Acos) { return OneNan(d, math::Acos(d, a)); }
ANYDML_UNARY(Atan) { return OneNan(d, math::Atan(d, a)); }
ANYDML_BINARY(Atan2) { return OneNan(d, math::Atan2(d, a, b)); }
ANYDML_UNARY(Sinh) { return OneNan(d, math::Sinh(d, a)); }
ANYDML_UNARY(Cosh) { return OneNan(d, math::Cosh(d, a)); }
ANYDML_UNARY(Tanh) { return OneNan(d, math::Tanh(d, a)); }
ANYDML_UNARY(Asinh) { return OneNan(d, math::Asinh(d, a)); }
ANYDML_UNARY(Acosh) { return OneNan(d, math::Acosh(d, a)); }
ANYDML_UNARY(Atanh) { return OneNan(d, math::Atanh(d, a)); }
ANYDML_UNARY(Erf) { return OneNan(d, math::Erf(d, a)); }
ANYDML_UNARY(ErfOfHalf) { return OneNan(d, math::ErfOfHalf(d, a)); }
ANYDML_BINARY(Power) { return math::Pow(d, a, b); }
// b holds the bits of an integer, whose lowest one says whether a negative base stays negative. FLOAT32 holds
// multiples of 256; a large exponent that is none of FLOAT32 is such a multiple and a rest.
ANYDML_BINARY(PowerInteger) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(di, b);
  const auto left = hn::And(bits, hn::Set(di, 0xFF));
  auto high = hn::ConvertTo(d, hn::Sub(bits, left));
  if ((instruction.parameters[0] & kUnsignedExponent) != 0) {
    const auto shifted = hn::BitCast(di, hn::ShiftRight<8>(hn::BitCast(du, b)));
    high = hn::Mul(hn::ConvertTo(d, shifted), hn::Set(d, 256.0f));
  }
  const V low = hn::ConvertTo(d, left);
  const V base = hn::Abs(a);
  const V exponent = hn::Add(high, low);
  V power = math::Pow(d, base, exponent);
  const auto inexact = hn::Ne(hn::Sub(exponent, high), low);
  if (!hn::AllFalse(d, inexact)) {
    // The multiple that is nearer to 0: the power with the larger one might overflow, and the result not.
    const V whole = hn::Add(high, hn::IfThenElseZero(hn::Lt(high, hn::Zero(d)), hn::Set(d, 256.0f)));
    const V rest = hn::Sub(low, hn::Sub(whole, high));
    power = hn::IfThenElse(inexact, hn::Mul(math::Pow(d, base, whole), math::Pow(d, base, rest)), power);
  }
  const V sign = hn::BitCast(d, hn::ShiftLeft<31>(bits));
  return OneNan(d, hn::Or(power, hn::And(sign, a)));
}
ANYDML_UNARY(ConstantPower) { return math::Pow(d, a, Parameter(d, instruction, 0)); }
ANYDML_UNARY(Sigmoid) { return OneNan(d, math::Sigmoid(d, a)); }
ANYDML_UNARY(ScaledTanh) {
  const V alpha = Parameter(d, instruction, 0), beta = Parameter(d, instruction, 1);
  const V inside = hn::Mul(beta, a);
  const V product = hn::Mul(alpha, math::Tanh(d, inside));
  // Next to 0 it is alpha beta a, which need not underflow where beta a does.
  const auto tiny = hn::Lt(hn::Abs(inside), hn::Set(d, 0x1p-100f));
  if (hn::AllFalse(d, tiny)) return OneNan(d, product);
  return OneNan(d, hn::IfThenElse(tiny, math::TimesTinyProduct(d, alpha, beta, a), product));
}
ANYDML_UNARY(Elu) {
  const V below = hn::Mul(Parameter(d, instruction, 0), math::Expm1(d, a));
  return OneNan(d, hn::IfThenElse(hn::Ge(a, hn::Zero(d)), a, below));
}
// gamma x above 0, otherwise gamma alpha (e^x - 1).
ANYDML_UNARY(ScaledElu) {
  // The parameters are multiplied first, so that no intermediate result underflows.
  const V alpha = Parameter(d, instruction, 0), gamma = Parameter(d, instruction, 1);
  const V factor = hn::Mul(gamma, alpha);
  const V y = math::Expm1(d, a);
  // Unless their product overflows: both are large then, and the larger one makes no y too small.
  const auto gamma_is_larger = hn::Gt(hn::Abs(gamma), hn::Abs(alpha));
  const V larger = hn::IfThenElse(gamma_is_larger, gamma, alpha);
  const V smaller = hn::IfThenElse(gamma_is_larger, alpha, gamma);
  const auto overflown = hn::Eq(hn::Abs(factor), InfinityOf(d));
  const V below = hn::IfThenElse(overflown, hn::Mul(hn::Mul(larger, y), smaller), hn::Mul(factor, y));
  return OneNan(d, hn::IfThenElse(hn::Gt(a, hn::Zero(d)), hn::Mul(gamma, a), below));
}

// alpha (e^t - 1) for the t = a / alpha above 1, which are those of a negative alpha. An ulp of t is many of
// e^t, so that the remainder of the quotient counts; and e^t overflows before its product with a small alpha.
template <class D, class V>
ANYDML_BODY V CeluOfNegativeAlpha(D d, V alpha, V a, V t) {
  // Powers of two keep the remainder from underflow and overflow.
  const V one = hn::Set(d, 1.0f), magnitude = hn::Abs(alpha);
  V scale = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-60f)), hn::Set(d, 0x1p64f), one);
  scale = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x1p60f)), hn::Set(d, 0x1p-64f), scale);
  const V divisor = hn::Mul(alpha, scale);
  const V remainder = math::ExactNegMulAdd(d, t, divisor, hn::Mul(a, scale));
  // Beyond 200 all overflows.
  const V low = hn::IfThenElseZero(hn::Lt(t, hn::Set(d, 200.0f)), hn::Div(remainder, divisor));
  const V product = hn::Mul(alpha, hn::Mul(math::Expm1(d, t), hn::Add(one, low)));
  const auto large = hn::Gt(t, hn::Set(d, 80.0f));
  return hn::IfThenElse(large, math::TimesExp(d, alpha, t, low), product);
}

// max(0, x) + min(0, alpha (e^(x / alpha) - 1))
ANYDML_UNARY(Celu) {
  const V alpha = Parameter(d, instruction, 0);
  const V t = hn::Div(a, alpha);
  V below = hn::Mul(alpha, math::Expm1(d, t));
  // Next to 0 it is x, also where the quotient underflows.
  const auto near = hn::And(hn::Lt(hn::Abs(t), hn::Set(d, 0x1p-25f)), hn::Lt(hn::Abs(alpha), InfinityOf(d)));
  below = hn::IfThenElse(near, a, below);
  const bool is_negative = (static_cast<uint32_t>(instruction.parameters[0]) & 0x80000000u) != 0;
  if (is_negative) {
    below = hn::IfThenElse(hn::Gt(t, hn::Set(d, 1.0f)), CeluOfNegativeAlpha(d, alpha, a, t), below);
  }
  return OneNan(d, hn::Add(LargerOf(d, hn::Zero(d), a), SmallerOf(d, hn::Zero(d), below)));
}

// What the rounded product t = b * a lacks, where an ulp of it is many of e^t. Elsewhere 0, or nearly.
template <class D, class V>
ANYDML_BODY V LowOfProduct(D d, V b, V a, V t) {
  const auto steep = hn::And(hn::Lt(t, hn::Zero(d)), hn::Gt(t, hn::Set(d, -200.0f)));
  return hn::IfThenElseZero(steep, math::ProductError(d, b, a, t));
}
// factor * y, where y is e^(t + low) in all but its last bits for the t that are far below 0. There y
// underflows, and its product need not.
template <class D, class V>
ANYDML_BODY V TimesSteep(D d, V factor, V y, V t, V low) {
  const auto small = hn::Lt(t, hn::Set(d, -80.0f));
  const V product = hn::Mul(factor, hn::Mul(y, hn::Add(hn::Set(d, 1.0f), low)));
  if (hn::AllFalse(d, small)) return product;
  return hn::IfThenElse(small, math::TimesExp(d, factor, t, low), product);
}

ANYDML_UNARY(Softplus) {
  const V alpha = Parameter(d, instruction, 0), beta = Parameter(d, instruction, 1);
  const V inside = hn::Mul(beta, a);
  const V low = LowOfProduct(d, beta, a, inside);
  const V product = TimesSteep(d, alpha, math::Softplus(d, inside), inside, low);
  // Far above 0 it is alpha beta a, which need not overflow where beta a does. The larger of both comes
  // first: alpha times the smaller one may underflow.
  const V infinity = InfinityOf(d);
  const auto overflown = hn::And(hn::Eq(inside, infinity), hn::Lt(hn::Abs(a), infinity));
  if (hn::AllFalse(d, overflown)) return OneNan(d, product);
  const auto beta_is_larger = hn::Gt(hn::Abs(beta), hn::Abs(a));
  const V larger = hn::IfThenElse(beta_is_larger, beta, a), smaller = hn::IfThenElse(beta_is_larger, a, beta);
  return OneNan(d, hn::IfThenElse(overflown, hn::Mul(hn::Mul(alpha, larger), smaller), product));
}
ANYDML_UNARY(Gelu) { return math::Gelu(d, a); }
// Half the instructions, and accurate enough for the rounding to FLOAT16 that follows.
ANYDML_UNARY(GeluOfHalf) { return OneNan(d, math::GeluOfHalf(d, a)); }
ANYDML_UNARY(Swish) {
  const V scale = Parameter(d, instruction, 0);
  const V inside = hn::Mul(scale, a);
  const V low = LowOfProduct(d, scale, a, inside);
  return OneNan(d, TimesSteep(d, a, math::Sigmoid(d, inside), inside, low));
}
