#include "ops/recurrent/problem.h"

namespace anydml::family::recurrent {
namespace {

constexpr Implementation<RecurrentProblem> kEntries[] = {
    {"cuda.cluster", CreateRecurrentCluster, nullptr, {}, RecurrentBound},
    {"cuda.resident", CreateRecurrentResident, nullptr, {}, RecurrentBound},
    {"cuda.steps", CreateRecurrentCuda, nullptr, {}, RecurrentBound},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<RecurrentProblem>(kEntries); }

}  // namespace anydml::family::recurrent
