#include "ops/gemm/plan.h"

namespace anydml {

GemmTiledPlan MakeGemmTiledPlan(const GemmProblem& problem, const SumLimits& limits,
                                const DeviceTraits& device) {
  GemmTiledPlan plan;
  GemmTiledParameters& p = plan.parameters;
  const auto operand = [](const GemmMatrix& from) {
    return GemmOperand{nullptr, {from.batch[0], from.batch[1]}, from.row, from.column};
  };
  p.limits = limits;
  p.a = operand(problem.a);
  p.b = operand(problem.b);
  p.output = operand(problem.output);
  p.has_c = problem.c.has_value();
  if (p.has_c) p.c = operand(*problem.c);
  p.m = static_cast<uint32_t>(problem.m);
  p.n = static_cast<uint32_t>(problem.n);
  p.k = static_cast<uint32_t>(problem.k);
  p.alpha = problem.alpha;
  p.beta = problem.beta;
  p.half_output = problem.output_type == DataType::kFloat16;
  p.batches = static_cast<uint32_t>(problem.Batches());
  p.inner_batch = FastDivisor(static_cast<uint32_t>(problem.batch[1]));
  p.plan = ProductTiles(problem.Batches(), p.m, p.n, p.k, device.multiprocessors);
  plan.grid = GridOf(p.plan);
  const uint64_t elements = problem.Batches() * problem.m * problem.n;
  plan.parts_grid = PartsGridOf(elements);
  if (p.plan.splits > 1) plan.temporary_bytes = p.plan.splits * elements * sizeof(float);
  return plan;
}

}  // namespace anydml
