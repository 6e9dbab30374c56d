#include "ops/batchnorm/problem.h"

namespace anydml {

// Without sums every step is rounded as in the reference. With sums: for products up to some hundred, as in
// the tests.
Exactness BatchNormBound(const BatchNormProblem& problem) {
  if (problem.kind == BatchNormProblem::kInference) {
    const uint32_t ulps = problem.finish.program.ulps();
    return {.float32_ulps = ulps, .float16_ulps = ulps == 0 ? 0u : 1u};
  }
  const auto summed = static_cast<double>(ReducedElements(problem.input, ReducedBy(problem.scale)));
  const double absolute = problem.kind == BatchNormProblem::kTraining ? 2e-4 : 2e-4 + summed * 0x1p-24 * 100;
  return {.float32_ulps = 4, .float16_ulps = 1, .relative = 1e-5, .absolute = absolute};
}

DimensionSet ReducedBy(const TensorDesc& parameter) {
  DimensionSet reduced{};
  for (uint32_t d = 0; d < parameter.rank; ++d) reduced[d] = parameter.sizes[d] == 1;
  return reduced;
}

std::unique_ptr<const Kernel> CreateBatchNormSteps(const BatchNormProblem& problem,
                                                   const LowerContext& context, std::string* why_not) {
  return CreateSteps(problem.steps, context, why_not);
}

}  // namespace anydml
