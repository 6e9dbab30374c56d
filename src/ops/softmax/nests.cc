#include "ops/softmax/problem.h"

namespace anydml {

SoftmaxNests NestsOf(const SoftmaxProblem& problem) {
  SoftmaxNests nests;
  const TensorDesc& input = problem.input;
  for (uint32_t d = 0; d < input.rank; ++d) {
    LoopNest<2>& nest = Has(problem.axes, d) ? nests.elements : nests.sets;
    nest.Append(input.sizes[d], {input.strides[d], problem.output.strides[d]});
  }
  return {SortedByStride(nests.sets, 0), SortedByStride(nests.elements, 0)};
}

// The error bound. The reference computes in FLOAT64. A difference x - max has an error of 2^-24 of itself,
// which becomes the relative error of the power; differences beyond 104 give 0. A logarithm has the relative
// error of the sum as an absolute one.
Exactness SoftmaxBound(const SoftmaxProblem& problem) {
  double n = 1;
  for (uint32_t d = 0; d < problem.input.rank; ++d) {
    if (Has(problem.axes, d)) n *= problem.input.sizes[d];
  }
  Exactness bound = {.float32_ulps = 4, .float16_ulps = 1};
  if (problem.kind == SoftmaxKind::kLogSoftmax) {
    bound.relative = bound.absolute = (n + 8) * 0x1p-24;
  } else {
    bound.relative = (n + 112) * 0x1p-24;
    bound.absolute = 0x1p-146;
  }
  return bound;
}

}  // namespace anydml
