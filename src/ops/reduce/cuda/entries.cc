#include "ops/reduce/problem.h"

namespace anydml::family::reduce {
namespace {

constexpr Implementation<ReduceProblem> kEntries[] = {
    {"cuda.blocks", CreateReduceCuda, nullptr, {}, ReduceBound},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<ReduceProblem>(kEntries); }

}  // namespace anydml::family::reduce
