#include "ops/mvn/problem.h"

namespace anydml::family::mvn {
namespace {

constexpr Implementation<MvnProblem> kEntries[] = {
    {"cpu.rows", CreateMvnRowsCpu, nullptr, kMvnExactness},
    {"cpu.steps", CreateMvnSteps, nullptr, kMvnExactness},
    {.name = "cpu.reference", .create = CreateMvnReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<MvnProblem>(kEntries); }

}  // namespace anydml::family::mvn
