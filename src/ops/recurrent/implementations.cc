#include "ops/recurrent/problem.h"

namespace anydml {
namespace {

// What a step's sums (of numbers up to 1) and its functions are off goes into the sums of the next one.
Exactness Bound(const RecurrentProblem& problem) {
  const auto terms = static_cast<double>(problem.inputs + 2 * problem.units + 16);
  Exactness exactness;
  exactness.absolute = exactness.relative = 0x1p-20 * terms * static_cast<double>(problem.steps);
  exactness.float32_ulps = 64;
  exactness.float16_ulps = 1;
  return exactness;
}

constexpr Implementation<RecurrentProblem> kImplementations[] = {
    {"cpu.steps", "cpu", ANYDML_ON_CPU(CreateRecurrentCpu), nullptr, {}, Bound},
    {"cuda.steps", "cuda", ANYDML_ON_CUDA(CreateRecurrentCuda), nullptr, {}, Bound},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateRecurrentReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<RecurrentProblem>> RecurrentImplementations() { return kImplementations; }
std::span<const char* const> RecurrentImplementationNames() { return kNames; }

}  // namespace anydml
