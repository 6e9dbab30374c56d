#include "ops/roi/problem.h"

namespace anydml::family::roi {
namespace {

constexpr Implementation<RoiProblem> kEntries[] = {
    {"cpu.samples", CreateRoiCpu},
    {.name = "cpu.reference", .create = CreateRoiReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<RoiProblem>(kEntries); }

}  // namespace anydml::family::roi
