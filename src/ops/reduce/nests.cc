#include <algorithm>

#include "ops/reduce/problem.h"

namespace anydml {

namespace {

// Sorted by strides, except loops with a stride of 0: each pass goes through memory in order.
LoopNest<1> WithNeighboursInnermost(const LoopNest<1>& nest) {
  LoopNest<1> sorted;
  for (uint32_t d = 0; d < nest.rank; ++d) {
    if (nest.loops[d].strides[0] == 0) sorted.Append(nest.loops[d].size, {0});
  }
  const LoopNest<1> by_stride = SortedByStride(nest, 0);
  for (uint32_t d = 0; d < by_stride.rank; ++d) {
    if (by_stride.loops[d].strides[0] != 0)
      sorted.Append(by_stride.loops[d].size, by_stride.loops[d].strides);
  }
  return sorted;
}

}  // namespace

ReduceNests NestsOf(const ReduceProblem& problem) {
  ReduceNests nests;
  const TensorDesc& input = problem.input;
  for (uint32_t d = 0; d < input.rank; ++d) {
    if (Has(problem.axes, d)) {
      nests.reduced.Append(input.sizes[d], {input.strides[d]});
    } else {
      nests.kept.Append(input.sizes[d], {input.strides[d], problem.output.strides[d]});
    }
  }
  nests.kept = SortedByStride(nests.kept, 0);
  if (!IsArg(problem.function)) nests.reduced = WithNeighboursInnermost(nests.reduced);
  return nests;
}

// The error bound for n numbers: what any order of additions may cause, relative to the sum of magnitudes.
// The reference adds in FLOAT64. A logarithm has the relative error of its argument as an absolute one.
Exactness ReduceBound(const ReduceProblem& problem) {
  const bool is_float = problem.input.type == DataType::kFloat32 || problem.input.type == DataType::kFloat16;
  const Accumulation accumulation = AccumulationOf(problem.function);
  const bool exact = accumulation == Accumulation::kMax || accumulation == Accumulation::kMin ||
                     IsArg(problem.function) || !is_float;
  if (exact) return {};
  double n = 1;
  for (uint32_t d = 0; d < problem.input.rank; ++d) {
    if (Has(problem.axes, d)) n *= problem.input.sizes[d];
  }
  Exactness bound = {.float32_ulps = 4, .float16_ulps = 1};
  bound.relative = (n + 4) * 0x1p-24;
  const bool is_log =
      problem.function == ReduceFunction::kLogSum || problem.function == ReduceFunction::kLogSumExp;
  if (is_log) bound.absolute = bound.relative;
  return bound;
}

}  // namespace anydml
