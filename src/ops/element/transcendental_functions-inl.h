// The bodies of the functions that are not exact, over math-inl.h. As functions-inl.h, after it.

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
// multiples of 256; what is left of large ones makes another power.
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
  // What is neither 0 nor infinite after so large a power was next to 1, and the factor is.
  const auto inexact = hn::And(hn::Ne(hn::Sub(exponent, high), low),
                               hn::And(hn::Gt(power, hn::Zero(d)), hn::Lt(power, InfinityOf(d))));
  if (!hn::AllFalse(d, inexact)) {
    const V rest = hn::Sub(low, hn::Sub(exponent, high));
    const V factor = math::Pow(d, base, rest);
    power = hn::IfThenElse(inexact, hn::Mul(power, factor), power);
  }
  const V sign = hn::BitCast(d, hn::ShiftLeft<31>(bits));
  return OneNan(d, hn::Or(power, hn::And(sign, a)));
}
ANYDML_UNARY(ConstantPower) { return math::Pow(d, a, Parameter(d, instruction, 0)); }
ANYDML_UNARY(Sigmoid) { return OneNan(d, math::Sigmoid(d, a)); }
ANYDML_UNARY(ScaledTanh) {
  const V inside = hn::Mul(Parameter(d, instruction, 1), a);
  return OneNan(d, hn::Mul(Parameter(d, instruction, 0), math::Tanh(d, inside)));
}
ANYDML_UNARY(Elu) {
  const V below = hn::Mul(Parameter(d, instruction, 0), math::Expm1(d, a));
  return OneNan(d, hn::IfThenElse(hn::Ge(a, hn::Zero(d)), a, below));
}
// gamma x above 0, gamma alpha (e^x - 1) else.
ANYDML_UNARY(ScaledElu) {
  // The parameters first: what is small is not made smaller before it is made larger.
  const V gamma = Parameter(d, instruction, 1);
  const V factor = hn::Mul(gamma, Parameter(d, instruction, 0));
  const V below = hn::Mul(factor, math::Expm1(d, a));
  return OneNan(d, hn::IfThenElse(hn::Gt(a, hn::Zero(d)), hn::Mul(gamma, a), below));
}
// max(0, x) + min(0, alpha (e^(x / alpha) - 1))
ANYDML_UNARY(Celu) {
  const V alpha = Parameter(d, instruction, 0);
  const V below = hn::Mul(alpha, math::Expm1(d, hn::Div(a, alpha)));
  return OneNan(d, hn::Add(LargerOf(d, hn::Zero(d), a), SmallerOf(d, hn::Zero(d), below)));
}

// factor * y, where y is e^t in all but its last bits for the t that are far below 0. There y underflows, and
// its product need not: the roots of it are multiplied one after the other.
template <class D, class V>
ANYDML_BODY V TimesSmall(D d, V factor, V y, V t) {
  const auto small = hn::Lt(t, hn::Set(d, -80.0f));
  const V product = hn::Mul(factor, y);
  if (hn::AllFalse(d, small)) return product;
  const V root = math::Exp(d, hn::Mul(t, hn::Set(d, 0.5f)));
  return hn::IfThenElse(small, hn::Mul(hn::Mul(factor, root), root), product);
}
// What multiplies such a y for the error of t = b * a, of which an ulp is many of e^t. Elsewhere 1, or
// nearly.
template <class D, class V>
ANYDML_BODY V ProductCorrection(D d, V b, V a, V t) {
  const auto steep = hn::And(hn::Lt(t, hn::Zero(d)), hn::Gt(t, hn::Set(d, -200.0f)));
  return hn::Add(hn::Set(d, 1.0f), hn::IfThenElseZero(steep, math::ProductError(d, b, a, t)));
}

ANYDML_UNARY(Softplus) {
  const V alpha = Parameter(d, instruction, 0), beta = Parameter(d, instruction, 1);
  const V inside = hn::Mul(beta, a);
  const V factor = hn::Mul(alpha, ProductCorrection(d, beta, a, inside));
  const V product = TimesSmall(d, factor, math::Softplus(d, inside), inside);
  // Far above 0 it is alpha beta a, which need not overflow where beta a does.
  const V infinity = InfinityOf(d);
  const auto overflown = hn::And(hn::Eq(inside, infinity), hn::Lt(hn::Abs(a), infinity));
  return OneNan(d, hn::IfThenElse(overflown, hn::Mul(hn::Mul(alpha, beta), a), product));
}
ANYDML_UNARY(Gelu) { return math::Gelu(d, a); }
// Of half the instructions, and as exact as the rounding to FLOAT16 that follows lets one see.
ANYDML_UNARY(GeluOfHalf) { return OneNan(d, math::GeluOfHalf(d, a)); }
ANYDML_UNARY(Swish) {
  const V scale = Parameter(d, instruction, 0);
  const V inside = hn::Mul(scale, a);
  const V factor = hn::Mul(a, ProductCorrection(d, scale, a, inside));
  return OneNan(d, TimesSmall(d, factor, math::Sigmoid(d, inside), inside));
}
