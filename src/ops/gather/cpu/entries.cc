#include "ops/gather/problem.h"

namespace anydml::family::gather {
namespace {

constexpr Implementation<GatherProblem> kEntries[] = {
    {"cpu.rows", CreateGatherCpu},
    {.name = "cpu.reference", .create = CreateGatherReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<GatherProblem>(kEntries); }

}  // namespace anydml::family::gather
