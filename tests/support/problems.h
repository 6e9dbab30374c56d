// Problems with everything on which a result might wrongly depend: equal elements, NaNs of every kind,
// several updates of one element, indices out of range; each large enough for several threads. The same in
// every process.
#pragma once

#include <vector>

#include "support/case_maker.h"

namespace anydml::testing {

std::vector<Case> LargeProblems();

}  // namespace anydml::testing
