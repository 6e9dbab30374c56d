#include "ops/resample/problem.h"

namespace anydml::family::resample {
namespace {

constexpr Implementation<ResampleProblem> kEntries[] = {
    {"cpu.copy", CreateResampleCopy},
    {"cpu.rows", CreateResampleRows},
    {.name = "cpu.reference", .create = CreateResampleReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<ResampleProblem>(kEntries); }

}  // namespace anydml::family::resample
