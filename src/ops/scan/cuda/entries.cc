#include "ops/scan/nonzero.h"
#include "ops/scan/problem.h"

namespace anydml::family::scan {
namespace {

constexpr Implementation<ScanProblem> kScan[] = {
    {.name = "cuda.split",
     .create = CreateScanCudaSplit,
     .better_not = ScanCudaSplitBetterNot,
     .bound = ScanBound},
    {.name = "cuda.columns",
     .create = CreateScanCudaColumns,
     .better_not = ScanCudaColumnsBetterNot,
     .bound = ScanBound},
    {.name = "cuda.rows", .create = CreateScanCudaRows, .bound = ScanBound},
};

constexpr Implementation<NonzeroProblem> kNonzero[] = {
    {"cuda.two_passes", CreateNonzeroCuda},
};

}  // namespace

void RegisterCuda(Column* column) {
  column->Add<ScanProblem>(kScan);
  column->Add<NonzeroProblem>(kNonzero);
}

}  // namespace anydml::family::scan
