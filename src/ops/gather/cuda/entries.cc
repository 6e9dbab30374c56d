#include "ops/gather/problem.h"

namespace anydml::family::gather {
namespace {

constexpr Implementation<GatherProblem> kEntries[] = {
    {"cuda.rows", CreateGatherCudaRows},
    {"cuda.units", CreateGatherCudaUnits},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<GatherProblem>(kEntries); }

}  // namespace anydml::family::gather
