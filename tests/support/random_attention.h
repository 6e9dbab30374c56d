// Random graphs of products with a softmax between them.
#pragma once

#include "ops/exactness.h"
#include "support/random_graph.h"

namespace anydml::testing {

// Attention, operator by operator: transposes, a product, perhaps a scale and a mask, a softmax, a product.
// The same for the same seed.
RandomGraph MakeRandomAttention(uint64_t seed);

// How near the graph's result is to what the operators give: numbers are up to 1, and one by one FLOAT16
// logits (up to 8) and weights are rounded.
Exactness ExactnessOfAttention(DataType type);

}  // namespace anydml::testing
