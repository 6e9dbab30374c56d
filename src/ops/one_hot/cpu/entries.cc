#include "ops/one_hot/problem.h"

namespace anydml::family::one_hot {
namespace {

constexpr Implementation<OneHotProblem> kEntries[] = {
    {"cpu.rows", CreateOneHotCpu},
    {.name = "cpu.reference", .create = CreateOneHotReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<OneHotProblem>(kEntries); }

}  // namespace anydml::family::one_hot
