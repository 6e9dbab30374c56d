#include "ops/scan/nonzero.h"
#include "ops/scan/problem.h"

namespace anydml::family::scan {
namespace {

constexpr Implementation<ScanProblem> kScan[] = {
    {.name = "cpu.blocks",
     .create = CreateScanCpuBlocks,
     .better_not = ScanCpuBlocksBetterNot,
     .bound = ScanBound},
    {"cpu.lines", CreateScanCpuLines},
    {.name = "cpu.reference", .create = CreateScanReference, .abilities = kIsReference},
};

constexpr Implementation<NonzeroProblem> kNonzero[] = {
    {"cpu.two_passes", CreateNonzeroCpu},
    {.name = "cpu.reference", .create = CreateNonzeroReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) {
  column->Add<ScanProblem>(kScan);
  column->Add<NonzeroProblem>(kNonzero);
}

}  // namespace anydml::family::scan
