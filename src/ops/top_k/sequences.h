// The sequences of a top-k problem as loops over its tensors.
#pragma once

#include "ops/common/loop_nest.h"
#include "ops/top_k/problem.h"

namespace anydml {

// The operands of the loops.
enum TopKOperand { kInput, kValue, kIndex };

// A loop nest over the sequences, with the input's smallest stride innermost; stores the strides along the
// axis in *axis.
inline LoopNest<3> SequencesOf(const TopKProblem& problem, LoopNest<3>::Offsets* axis) {
  LoopNest<3> nest;
  for (uint32_t d = 0; d < problem.input.rank; ++d) {
    const LoopNest<3>::Offsets strides = {problem.input.strides[d], problem.value.strides[d],
                                          problem.index.strides[d]};
    if (d == problem.axis) {
      *axis = strides;
    } else {
      nest.Append(problem.input.sizes[d], strides);
    }
  }
  return SortedByStride(nest, kInput);
}

}  // namespace anydml
