#include "ops/fold/problem.h"

namespace anydml::family::fold {
namespace {

constexpr Implementation<FoldProblem> kEntries[] = {
    {"cpu.rows", CreateFoldRows},
    {.name = "cpu.reference", .create = CreateFoldReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<FoldProblem>(kEntries); }

}  // namespace anydml::family::fold
