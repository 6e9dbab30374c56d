// Sets of contiguous elements, as in layer and instance normalisation.
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
       bias_along_row = false;  // one for each element of the row; otherwise one for all
};

// Rows of at most `longest` elements; empty, with a reason, if the problem has none.
std::optional<MvnRows> RowsOf(const MvnProblem& problem, uint64_t longest, std::string* why_not);

}  // namespace anydml
