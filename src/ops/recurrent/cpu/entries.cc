#include "ops/recurrent/problem.h"

namespace anydml::family::recurrent {
namespace {

constexpr Implementation<RecurrentProblem> kEntries[] = {
    {"cpu.steps", CreateRecurrentCpu, nullptr, kRecurrentExactness},
    {.name = "cpu.reference", .create = CreateRecurrentReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<RecurrentProblem>(kEntries); }

}  // namespace anydml::family::recurrent
