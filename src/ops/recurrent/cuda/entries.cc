#include "ops/recurrent/problem.h"

namespace anydml::family::recurrent {
namespace {

constexpr Implementation<RecurrentProblem> kEntries[] = {
    {"cuda.cluster", CreateRecurrentCluster, nullptr, kRecurrentExactness},
    {"cuda.resident", CreateRecurrentResident, nullptr, kRecurrentExactness},
    {"cuda.steps", CreateRecurrentCuda, nullptr, kRecurrentExactness},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<RecurrentProblem>(kEntries); }

}  // namespace anydml::family::recurrent
