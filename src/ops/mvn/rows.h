// Sets of neighbouring elements, as layer and instance normalisation have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ops/common/loop_nest.h"
#include "ops/mvn/problem.h"

namespace anydml {

struct MvnRows {
  LoopNest<4> rows;  // offsets into input, output, scale, bias
  uint64_t length = 1;
  bool has_scale = false, has_bias = false;
  bool scale_along_row = false,
       bias_along_row = false;  // an element for each of the row's; otherwise one for all
};

// Rows of at most `longest` elements; none, with a reason, where the problem is something else.
std::optional<MvnRows> RowsOf(const MvnProblem& problem, uint64_t longest, std::string* why_not);

}  // namespace anydml
