#include "ops/integer_product/problem.h"

namespace anydml {
namespace {

// All of it is exact: sums of integers, and programs without a transcendental function.
constexpr Implementation<IntegerProductProblem> kImplementations[] = {
    {"cpu.depthwise", "cpu", ANYDML_ON_CPU(CreateIntegerDepthwise)},
    {"cpu.dot_few", "cpu", ANYDML_ON_CPU(CreateIntegerFew)},
    {"cpu.dot", "cpu", ANYDML_ON_CPU(CreateIntegerDot)},
    {"cpu.packed", "cpu", ANYDML_ON_CPU(CreateIntegerSums)},
    {"cpu.sums_first", "cpu", ANYDML_ON_CPU(CreateSumsThenProgram)},
    {"cuda.tiled", "cuda", ANYDML_ON_CUDA(CreateIntegerSumsCuda)},
    {"cuda.sums_first", "cuda", ANYDML_ON_CUDA(CreateSumsThenProgram)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateIntegerReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<IntegerProductProblem>> IntegerProductImplementations() {
  return kImplementations;
}
std::span<const char* const> IntegerProductImplementationNames() { return kNames; }

}  // namespace anydml
