#include "ops/roi/problem.h"

namespace anydml::family::roi {
namespace {

constexpr Implementation<RoiProblem> kEntries[] = {
    {"cuda.samples", CreateRoiCuda},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<RoiProblem>(kEntries); }

}  // namespace anydml::family::roi
