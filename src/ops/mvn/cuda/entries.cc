#include "ops/mvn/problem.h"

namespace anydml::family::mvn {
namespace {

constexpr Implementation<MvnProblem> kEntries[] = {
    {"cuda.rows", CreateMvnRowsCuda, nullptr, kMvnExactness},
    {"cuda.steps", CreateMvnSteps, nullptr, kMvnExactness},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<MvnProblem>(kEntries); }

}  // namespace anydml::family::mvn
