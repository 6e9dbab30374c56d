#include "ops/scatter/plan.h"

namespace anydml {
namespace {

void PlanNd(const ScatterProblem& p, ScatterPlan* plan) {
  const uint32_t rank = p.output.rank;
  const uint32_t positions = p.indices_dimensions - 1;
  const uint32_t slice = p.input_dimensions - p.tuple_size();
  for (uint32_t d = 0; d < positions; ++d) {
    const uint32_t in_indices = rank - 1 - positions + d;
    const uint32_t in_updates = rank - slice - positions + d;
    plan->positions.Append(p.indices.sizes[in_indices],
                           {p.indices.strides[in_indices], p.updates.strides[in_updates], 0});
  }
  LoopNest<2> nest;
  for (uint32_t d = rank - slice; d < rank; ++d) {
    nest.Append(p.output.sizes[d], {p.updates.strides[d], p.output.strides[d]});
  }
  plan->slice = SortedByStride(nest, ScatterPlan::kSliceOutput);
}

void PlanElements(const ScatterProblem& p, ScatterPlan* plan) {
  for (uint32_t d = 0; d < p.indices.rank; ++d) {
    const uint64_t output_stride = d == p.axis ? 0 : p.output.strides[d];
    plan->positions.Append(p.indices.sizes[d], {p.indices.strides[d], p.updates.strides[d], output_stride});
  }
}

}  // namespace

ScatterPlan MakeScatterPlan(const ScatterProblem& problem) {
  ScatterPlan plan;
  if (problem.kind == ScatterProblem::Kind::kNd) {
    PlanNd(problem, &plan);
  } else {
    PlanElements(problem, &plan);
  }
  plan.tuple_size = problem.tuple_size();
  for (uint32_t c = 0; c < plan.tuple_size; ++c) {
    const uint32_t d = problem.target_dimension(c);
    plan.tuple[c] = {problem.output.sizes[d], problem.output.strides[d],
                     uint64_t{c} * problem.indices.strides[problem.indices.rank - 1]};
  }
  return plan;
}

Dimensions PositionCoordinate(const ScatterProblem& problem, uint64_t number) {
  Dimensions at{};
  uint32_t d = problem.indices.rank;
  if (problem.kind == ScatterProblem::Kind::kNd) --d;  // the last dimension is the tuple
  while (d-- > 0) {
    at[d] = static_cast<uint32_t>(number % problem.indices.sizes[d]);
    number /= problem.indices.sizes[d];
  }
  return at;
}

}  // namespace anydml
