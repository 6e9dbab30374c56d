#include "ops/one_hot/plan.h"

#include "ops/device/units.h"

namespace anydml {

OneHotPlan MakeOneHotPlan(const OneHotProblem& problem, bool aligned) {
  LoopNest<3> nest = OneHotNest(problem);
  const uint32_t element_bytes = BitSize(problem.output.type) / 8;
  OneHotPlan plan;
  OneHotParameters& p = plan.parameters;
  if (aligned && HasWholeUnits(nest, kOneHotOutput, element_bytes)) {
    const auto step = TakeUnits(&nest, kMaxUnitBytes / element_bytes);
    plan.unit_elements = kMaxUnitBytes / element_bytes;
    p.index_step = step[kOneHotIndices];
    p.place_step = step[kOneHotPlace];
  }
  p.indices = DeviceIndices(problem.indices.type);
  p.wrap = problem.wrap;
  p.on = problem.on;
  p.nest = DeviceNest<3>(nest);
  p.units = static_cast<uint32_t>(Iterations(nest));
  plan.grid = GridOf(p.units, kOneHotThreads);
  return plan;
}

}  // namespace anydml
