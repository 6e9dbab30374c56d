#include "ops/reduce/problem.h"

namespace anydml::family::reduce {
namespace {

constexpr Implementation<ReduceProblem> kEntries[] = {
    {"cpu.blocks", CreateReduceCpu, nullptr, {}, ReduceBound},
    {.name = "cpu.reference", .create = CreateReduceReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<ReduceProblem>(kEntries); }

}  // namespace anydml::family::reduce
