// Random graphs of products with a softmax between them.
#pragma once

#include "support/random_graph.h"

namespace anydml::testing {

// Attention, operator by operator: transposes, a product, perhaps a scale and a mask, a softmax, a product.
// The same for the same seed.
RandomGraph MakeRandomAttention(uint64_t seed);

}  // namespace anydml::testing
