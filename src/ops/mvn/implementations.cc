#include "ops/mvn/problem.h"

namespace anydml {
namespace {

// Of numbers up to some ten, as the tests have them. A mean is rounded to FLOAT32, and what it is off by is
// divided by the deviation; activations may have slopes of some units.
constexpr Exactness kRounded = {.float32_ulps = 4, .float16_ulps = 1, .relative = 1e-5, .absolute = 2e-4};

constexpr Implementation<MvnProblem> kImplementations[] = {
    {"cpu.rows", "cpu", ANYDML_ON_CPU(CreateMvnRowsCpu), nullptr, kRounded},
    {"cpu.steps", "cpu", ANYDML_ON_CPU(CreateMvnSteps), nullptr, kRounded},
    {"cuda.rows", "cuda", ANYDML_ON_CUDA(CreateMvnRowsCuda), nullptr, kRounded},
    {"cuda.steps", "cuda", ANYDML_ON_CUDA(CreateMvnSteps), nullptr, kRounded},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateMvnReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<MvnProblem>> MvnImplementations() { return kImplementations; }
std::span<const char* const> MvnImplementationNames() { return kNames; }

std::unique_ptr<const Kernel> CreateMvnSteps(const MvnProblem& problem, const LowerContext& context,
                                             std::string* why_not) {
  return CreateSteps(problem.steps, context, why_not);
}

}  // namespace anydml
