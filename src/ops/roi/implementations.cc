#include "ops/roi/problem.h"

namespace anydml {
namespace {

constexpr Implementation<RoiProblem> kImplementations[] = {
    {"cpu.samples", "cpu", ANYDML_ON_CPU(CreateRoiCpu)},
    {"cuda.samples", "cuda", ANYDML_ON_CUDA(CreateRoiCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateRoiReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<RoiProblem>> RoiImplementations() { return kImplementations; }
std::span<const char* const> RoiImplementationNames() { return kNames; }

}  // namespace anydml
