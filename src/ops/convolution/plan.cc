#include "ops/convolution/plan.h"

namespace anydml {

ConvolutionTiledPlan MakeConvolutionTiledPlan(const ConvolutionProblem& problem, const DeviceTraits& device) {
  ConvolutionTiledPlan plan;
  ConvolutionParameters& p = plan.parameters;
  p.shape = DeviceShape(problem.shape, device.multiprocessors);
  p.bias_stride = problem.bias.value_or(0);
  p.half_output = problem.type == DataType::kFloat16;
  plan.grid = GridOf(p.shape.plan);
  const uint64_t elements = problem.shape.Elements();
  plan.parts_grid = PartsGridOf(elements);
  if (p.shape.plan.splits > 1) plan.parts_bytes = p.shape.plan.splits * elements * sizeof(float);
  return plan;
}

}  // namespace anydml
