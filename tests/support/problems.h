// Problems with whatever a result might depend on and must not: equal elements, NaNs of every kind,
// several updates of one element, indices out of range; of all types, all index types, small and
// large enough to be shared by threads. The same in every process.
#pragma once

#include <vector>

#include "support/api_run.h"

namespace anydml::testing {

std::vector<Problem> SmallProblems();
std::vector<Problem> LargeProblems();

}  // namespace anydml::testing
