#include "ops/generate/problem.h"
#include "ops/generate/random.h"

namespace anydml {
namespace {

constexpr Implementation<GenerateProblem> kImplementations[] = {
    {"cpu.rows", "cpu", ANYDML_ON_CPU(CreateGenerateCpu)},
    {"cuda.units", "cuda", ANYDML_ON_CUDA(CreateGenerateCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateGenerateReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

constexpr Implementation<RandomProblem> kRandomImplementations[] = {
    {"cpu.lanes", "cpu", ANYDML_ON_CPU(CreateRandomCpu)},
    {"cuda.blocks", "cuda", ANYDML_ON_CUDA(CreateRandomCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateRandomReference)},
};
constexpr auto kRandomNames = ImplementationNames(kRandomImplementations);

}  // namespace

std::span<const Implementation<GenerateProblem>> GenerateImplementations() { return kImplementations; }
std::span<const char* const> GenerateImplementationNames() { return kNames; }
std::span<const Implementation<RandomProblem>> RandomImplementations() { return kRandomImplementations; }
std::span<const char* const> RandomImplementationNames() { return kRandomNames; }

}  // namespace anydml
