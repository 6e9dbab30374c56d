#include "ops/one_hot/problem.h"

namespace anydml {
namespace {

constexpr Implementation<OneHotProblem> kImplementations[] = {
    {"cpu.rows", "cpu", ANYDML_ON_CPU(CreateOneHotCpu)},
    {"cuda.units", "cuda", ANYDML_ON_CUDA(CreateOneHotCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateOneHotReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<OneHotProblem>> OneHotImplementations() { return kImplementations; }
std::span<const char* const> OneHotImplementationNames() { return kNames; }

}  // namespace anydml
