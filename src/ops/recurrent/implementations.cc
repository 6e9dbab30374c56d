#include "ops/recurrent/problem.h"

namespace anydml {
namespace {

// A sum of n products is off by n * 2^-24 times the sum of the magnitudes (contract): 4 for inputs, a state
// and biases up to 1 and weights whose rows sum up to 1. Such weights hand the state's error on to the next
// step as it is, so that errors of steps add up; larger ones magnify it, whoever computes.
Exactness Bound(const RecurrentProblem& problem) {
  constexpr double kMagnitudes = 4;
  constexpr uint64_t kFurtherTerms = 8;  // biases, a peephole, and the units in the last place of functions
  const auto terms = static_cast<double>(problem.inputs + problem.units + kFurtherTerms);
  Exactness exactness;
  exactness.absolute = 0x1p-24 * terms * kMagnitudes * static_cast<double>(problem.steps);
  exactness.relative = exactness.absolute;  // where functions without a limit let the state grow
  exactness.float16_ulps = 1;
  return exactness;
}

constexpr Implementation<RecurrentProblem> kImplementations[] = {
    {"cpu.steps", "cpu", ANYDML_ON_CPU(CreateRecurrentCpu), nullptr, {}, Bound},
    {"cuda.cluster", "cuda", ANYDML_ON_CUDA(CreateRecurrentCluster), nullptr, {}, Bound},
    {"cuda.resident", "cuda", ANYDML_ON_CUDA(CreateRecurrentResident), nullptr, {}, Bound},
    {"cuda.steps", "cuda", ANYDML_ON_CUDA(CreateRecurrentCuda), nullptr, {}, Bound},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateRecurrentReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<RecurrentProblem>> RecurrentImplementations() { return kImplementations; }
std::span<const char* const> RecurrentImplementationNames() { return kNames; }

}  // namespace anydml
