#include "ops/element/problem.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// The reference rounds once what others compute in FLOAT32.
Exactness ExactnessOf(const ElementProblem& problem) {
  const uint32_t ulps = problem.program.ulps();
  return {.float32_ulps = ulps, .float16_ulps = ulps == 0 ? 0u : 1u};
}

constexpr Implementation<ElementProblem> kImplementations[] = {
    {"cpu.copy", "cpu", ANYDML_ON_CPU(CreateElementCopy)},
    {"cpu.direct", "cpu", ANYDML_ON_CPU(CreateElementDirect), nullptr, {}, ExactnessOf},
    {"cpu.tiles", "cpu", ANYDML_ON_CPU(CreateElementTiles), nullptr, {}, ExactnessOf},
    {"cuda.copy", "cuda", ANYDML_ON_CUDA(CreateElementCopyCuda)},
    {"cuda.flat", "cuda", ANYDML_ON_CUDA(CreateElementFlatCuda), nullptr, {}, ExactnessOf},
    {"cuda.across", "cuda", ANYDML_ON_CUDA(CreateElementAcrossCuda), nullptr, {}, ExactnessOf},
    {"cuda.compiled",
     "cuda",
     ANYDML_ON_CUDA(CreateElementCompiledCuda),
     ANYDML_ON_CUDA(BetterNotElementCompiledCuda),
     {},
     ExactnessOf},
    {"cuda.program", "cuda", ANYDML_ON_CUDA(CreateElementProgramCuda), nullptr, {}, ExactnessOf},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateElementReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<ElementProblem>> ElementImplementations() { return kImplementations; }
std::span<const char* const> ElementImplementationNames() { return kNames; }

}  // namespace anydml
