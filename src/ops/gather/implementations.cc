#include "ops/gather/problem.h"

namespace anydml {
namespace {

constexpr Implementation<GatherProblem> kImplementations[] = {
    {"cpu.rows", "cpu", ANYDML_ON_CPU(CreateGatherCpu)},
    {"cuda.rows", "cuda", ANYDML_ON_CUDA(CreateGatherCudaRows)},
    {"cuda.units", "cuda", ANYDML_ON_CUDA(CreateGatherCudaUnits)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateGatherReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<GatherProblem>> GatherImplementations() { return kImplementations; }
std::span<const char* const> GatherImplementationNames() { return kNames; }

}  // namespace anydml
