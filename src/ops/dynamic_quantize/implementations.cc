#include "ops/dynamic_quantize/problem.h"

namespace anydml {
namespace {

constexpr Implementation<DynamicQuantizeProblem> kImplementations[] = {
    {"cpu.two_passes", "cpu", ANYDML_ON_CPU(CreateDynamicQuantizeCpu)},
    {"cuda.two_passes", "cuda", ANYDML_ON_CUDA(CreateDynamicQuantizeCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateDynamicQuantizeReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<DynamicQuantizeProblem>> DynamicQuantizeImplementations() {
  return kImplementations;
}
std::span<const char* const> DynamicQuantizeImplementationNames() { return kNames; }

}  // namespace anydml
