#include "ops/one_hot/problem.h"

namespace anydml::family::one_hot {
namespace {

constexpr Implementation<OneHotProblem> kEntries[] = {
    {"cuda.units", CreateOneHotCuda},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<OneHotProblem>(kEntries); }

}  // namespace anydml::family::one_hot
