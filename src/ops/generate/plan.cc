#include "ops/generate/plan.h"

#include "ops/device/units.h"

namespace anydml {

GeneratePlan MakeGeneratePlan(const GenerateProblem& problem, bool aligned) {
  LoopNest<4> nest = GenerateNest(problem);
  const uint32_t element_bytes = BitSize(problem.output.type) / 8;
  GeneratePlan plan;
  GenerateParameters& p = plan.parameters;
  if (aligned && HasWholeUnits(nest, kGenerateOutput, element_bytes)) {
    plan.unit_elements = kMaxUnitBytes / element_bytes;
    p.inner.strides = TakeUnits(&nest, plan.unit_elements);
  }
  p.value = problem.value;
  p.delta = problem.delta;
  p.begin = problem.begin;
  p.end = problem.end;
  p.nest = DeviceNest<4>(nest);
  p.units = static_cast<uint32_t>(Iterations(nest));
  plan.grid = GridOf(p.units, kGenerateThreads);
  return plan;
}

RandomPlan MakeRandomPlan(const RandomProblem& problem, bool aligned) {
  LoopNest<1> nest;
  for (uint32_t d = 0; d < problem.output.rank; ++d) {
    nest.Append(problem.output.sizes[d], {problem.output.strides[d]});
  }
  RandomPlan plan;
  RandomParameters& p = plan.parameters;
  p.state_stride = problem.state_stride;
  if (problem.has_output_state) p.output_state_stride = problem.output_state_stride;
  p.count = static_cast<uint32_t>(Iterations(nest));
  p.blocks = static_cast<uint32_t>(CeilDivide(p.count, 4));
  const bool contiguous = nest.rank == 0 || (nest.rank == 1 && nest.loops[0].strides[0] == 1);
  p.in_units = contiguous && aligned;
  p.nest = DeviceNest<1>(nest);
  plan.grid = GridOf(p.blocks, kGenerateThreads);
  return plan;
}

}  // namespace anydml
