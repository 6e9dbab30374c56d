#include "ops/dynamic_quantize/problem.h"

namespace anydml::family::dynamic_quantize {
namespace {

constexpr Implementation<DynamicQuantizeProblem> kEntries[] = {
    {"cuda.two_passes", CreateDynamicQuantizeCuda},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<DynamicQuantizeProblem>(kEntries); }

}  // namespace anydml::family::dynamic_quantize
