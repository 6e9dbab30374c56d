#include "ops/lrn/problem.h"

namespace anydml {
namespace {

// Of numbers up to some ten, as the tests have them: the gradient is a difference.
constexpr Exactness kRounded = {.float32_ulps = 16, .float16_ulps = 1, .relative = 1e-5, .absolute = 1e-3};

constexpr Implementation<LrnProblem> kImplementations[] = {
    {"cpu.steps", "cpu", ANYDML_ON_CPU(CreateLrnSteps), nullptr, kRounded},
    {"cuda.steps", "cuda", ANYDML_ON_CUDA(CreateLrnSteps), nullptr, kRounded},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateLrnReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<LrnProblem>> LrnImplementations() { return kImplementations; }
std::span<const char* const> LrnImplementationNames() { return kNames; }

std::unique_ptr<const Kernel> CreateLrnSteps(const LrnProblem& problem, const LowerContext& context,
                                             std::string* why_not) {
  return CreateSteps(problem.steps, context, why_not);
}

}  // namespace anydml
