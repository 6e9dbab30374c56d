#include "ops/scan/nonzero.h"
#include "ops/scan/problem.h"

namespace anydml {
namespace {

constexpr Implementation<ScanProblem> kImplementations[] = {
    {.name = "cpu.blocks",
     .backend = "cpu",
     .create = ANYDML_ON_CPU(CreateScanCpuBlocks),
     .better_not = ANYDML_ON_CPU(ScanCpuBlocksBetterNot),
     .bound = ScanBound},
    {"cpu.lines", "cpu", ANYDML_ON_CPU(CreateScanCpuLines)},
    {.name = "cuda.split",
     .backend = "cuda",
     .create = ANYDML_ON_CUDA(CreateScanCudaSplit),
     .better_not = ANYDML_ON_CUDA(ScanCudaSplitBetterNot),
     .bound = ScanBound},
    {.name = "cuda.columns",
     .backend = "cuda",
     .create = ANYDML_ON_CUDA(CreateScanCudaColumns),
     .better_not = ANYDML_ON_CUDA(ScanCudaColumnsBetterNot),
     .bound = ScanBound},
    {.name = "cuda.rows",
     .backend = "cuda",
     .create = ANYDML_ON_CUDA(CreateScanCudaRows),
     .bound = ScanBound},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateScanReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

constexpr Implementation<NonzeroProblem> kNonzeroImplementations[] = {
    {"cpu.two_passes", "cpu", ANYDML_ON_CPU(CreateNonzeroCpu)},
    {"cuda.two_passes", "cuda", ANYDML_ON_CUDA(CreateNonzeroCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateNonzeroReference)},
};
constexpr auto kNonzeroNames = ImplementationNames(kNonzeroImplementations);

}  // namespace

std::span<const Implementation<ScanProblem>> ScanImplementations() { return kImplementations; }
std::span<const char* const> ScanImplementationNames() { return kNames; }
std::span<const Implementation<NonzeroProblem>> NonzeroImplementations() { return kNonzeroImplementations; }
std::span<const char* const> NonzeroImplementationNames() { return kNonzeroNames; }

}  // namespace anydml
