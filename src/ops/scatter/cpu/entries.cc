#include "ops/scatter/problem.h"
#include "ops/scatter/scatter.h"

namespace anydml::family::scatter {
namespace {

constexpr Implementation<ScatterProblem> kEntries[] = {
    {"cpu.typed", CreateScatterTyped},
    {.name = "cpu.reference", .create = CreateScatterReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<ScatterProblem>(kEntries); }

}  // namespace anydml::family::scatter
