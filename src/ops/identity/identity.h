// ELEMENT_WISE_IDENTITY: a copy between layouts (transpose, broadcast, padding),
// or x * Scale + Bias.
#pragma once

#include "ops/operator.h"

namespace anydml {

extern const Operator kIdentityOperator;

}  // namespace anydml
