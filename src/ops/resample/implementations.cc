#include "ops/resample/problem.h"

namespace anydml {
namespace {

constexpr Implementation<ResampleProblem> kImplementations[] = {
    {"cpu.copy", "cpu", ANYDML_ON_CPU(CreateResampleCopy)},
    {"cpu.rows", "cpu", ANYDML_ON_CPU(CreateResampleRows)},
    {"cuda.copy_rows", "cuda", ANYDML_ON_CUDA(CreateResampleCopyRowsCuda)},
    {"cuda.copy", "cuda", ANYDML_ON_CUDA(CreateResampleCopyCuda)},
    {"cuda.bilinear", "cuda", ANYDML_ON_CUDA(CreateResampleBilinearCuda)},
    {"cuda.sums", "cuda", ANYDML_ON_CUDA(CreateResampleSumsCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateResampleReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<ResampleProblem>> ResampleImplementations() { return kImplementations; }
std::span<const char* const> ResampleImplementationNames() { return kNames; }

}  // namespace anydml
