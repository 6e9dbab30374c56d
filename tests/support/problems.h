// Problems with whatever a result might depend on and must not: equal elements, NaNs of every kind,
// several updates of one element, indices out of range; each large enough to be shared by threads. The same
// in every process.
#pragma once

#include <vector>

#include "support/case_maker.h"

namespace anydml::testing {

std::vector<Case> LargeProblems();

}  // namespace anydml::testing
