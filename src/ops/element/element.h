// The element-wise operators, activations, casts and quantisations: all operators that compute an output
// element from the elements at the same coordinates.
#pragma once

#include <span>

#include "ops/operator.h"

namespace anydml {

std::span<const Operator> ElementOperators();

}  // namespace anydml
