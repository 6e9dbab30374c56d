#include "ops/dynamic_quantize/problem.h"

namespace anydml::family::dynamic_quantize {
namespace {

constexpr Implementation<DynamicQuantizeProblem> kEntries[] = {
    {"cpu.two_passes", CreateDynamicQuantizeCpu},
    {.name = "cpu.reference", .create = CreateDynamicQuantizeReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<DynamicQuantizeProblem>(kEntries); }

}  // namespace anydml::family::dynamic_quantize
