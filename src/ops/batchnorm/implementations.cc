#include "ops/batchnorm/problem.h"

namespace anydml {
namespace {

// Without sums every step is rounded as in the reference. Sums: of products up to some hundred, as the tests
// have them.
Exactness ExactnessOf(const BatchNormProblem& problem) {
  if (problem.kind == BatchNormProblem::kInference) {
    const uint32_t ulps = problem.finish.program.ulps();
    return {.float32_ulps = ulps, .float16_ulps = ulps == 0 ? 0u : 1u};
  }
  const auto summed = static_cast<double>(ReducedElements(problem.input, ReducedBy(problem.scale)));
  const double absolute = problem.kind == BatchNormProblem::kTraining ? 2e-4 : 2e-4 + summed * 0x1p-24 * 100;
  return {.float32_ulps = 4, .float16_ulps = 1, .relative = 1e-5, .absolute = absolute};
}

constexpr Implementation<BatchNormProblem> kImplementations[] = {
    {"cpu.rows", "cpu", ANYDML_ON_CPU(CreateBatchNormRows), nullptr, {}, ExactnessOf},
    {"cpu.steps", "cpu", ANYDML_ON_CPU(CreateBatchNormSteps), nullptr, {}, ExactnessOf},
    {"cuda.rows", "cuda", ANYDML_ON_CUDA(CreateBatchNormRowsCuda), nullptr, {}, ExactnessOf},
    {"cuda.steps", "cuda", ANYDML_ON_CUDA(CreateBatchNormSteps), nullptr, {}, ExactnessOf},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateBatchNormReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<BatchNormProblem>> BatchNormImplementations() { return kImplementations; }
std::span<const char* const> BatchNormImplementationNames() { return kNames; }

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
