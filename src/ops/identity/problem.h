// What an identity kernel is made for.
//
// Without ScaleBias elements are copied bit for bit. With it, y = x * Scale + Bias:
// - FLOAT32 in float, FLOAT64 in double, FLOAT16 in float with one rounding to
//   nearest even at the end. The product is rounded before the sum (never fused),
//   so that every backend and compiler gives the same bits; for the same reason a
//   NaN in the result is always the positive quiet one without payload.
// - Integers, when Scale and Bias are both integers (ScaleBias {-1, 0} is how clients
//   negate): exact arithmetic modulo 2^64, of which the low bits of the type are
//   kept. Like two's complement arithmetic it wraps: -INT_MIN is INT_MIN.
// - Integers otherwise: in double, rounded toward zero as a C conversion does,
//   saturated to the range of the type; NaN becomes 0.
#pragma once

#include <optional>
#include <string>

#include "ops/implementation_list.h"
#include "schema/operator_desc.h"

namespace anydml {

struct IdentityProblem {
  TensorDesc input;
  TensorDesc output;  // same type and sizes
  std::optional<ScaleBias> scale_bias;
};

// The implementations, fastest first, the reference last (lower.cc), and their create functions.
std::span<const Implementation<IdentityProblem>> IdentityImplementations();
CreateFunction<IdentityProblem> CreateIdentityCopy, CreateIdentityTyped, CreateIdentityCuda,
    CreateIdentityReference;

}  // namespace anydml
