// The element-wise operators, activations, casts and quantisations: everything that computes an element of
// the output from the elements at the same coordinates.
#pragma once

#include <span>

#include "ops/operator.h"

namespace anydml {

std::span<const Operator> ElementOperators();

}  // namespace anydml
