#include "ops/fold/problem.h"

namespace anydml {
namespace {

constexpr Implementation<FoldProblem> kImplementations[] = {
    {"cpu.rows", "cpu", ANYDML_ON_CPU(CreateFoldRows)},
    {"cuda.elements", "cuda", ANYDML_ON_CUDA(CreateFoldCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateFoldReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<FoldProblem>> FoldImplementations() { return kImplementations; }
std::span<const char* const> FoldImplementationNames() { return kNames; }

}  // namespace anydml
