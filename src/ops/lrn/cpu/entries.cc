#include "ops/lrn/problem.h"

namespace anydml::family::lrn {
namespace {

constexpr Implementation<LrnProblem> kEntries[] = {
    {"cpu.steps", CreateLrnSteps, nullptr, kLrnExactness},
    {.name = "cpu.reference", .create = CreateLrnReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<LrnProblem>(kEntries); }

}  // namespace anydml::family::lrn
