#include "ops/lrn/problem.h"

namespace anydml::family::lrn {
namespace {

constexpr Implementation<LrnProblem> kEntries[] = {
    {"cuda.steps", CreateLrnSteps, nullptr, kLrnExactness},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<LrnProblem>(kEntries); }

}  // namespace anydml::family::lrn
