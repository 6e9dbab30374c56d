// Random graphs of convolutions and the operators that follow them in networks.
#pragma once

#include "support/random_graph.h"

namespace anydml::testing {

// One or two convolutions, the last of which may be normalised, added to and limited. Sums are integers, the
// same in any order. The same for the same seed.
RandomGraph MakeRandomBlock(uint64_t seed);

}  // namespace anydml::testing
