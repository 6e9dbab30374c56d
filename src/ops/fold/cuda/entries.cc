#include "ops/fold/problem.h"

namespace anydml::family::fold {
namespace {

constexpr Implementation<FoldProblem> kEntries[] = {
    {"cuda.elements", CreateFoldCuda},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<FoldProblem>(kEntries); }

}  // namespace anydml::family::fold
