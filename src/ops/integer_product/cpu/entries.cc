#include "ops/integer_product/problem.h"

namespace anydml::family::integer_product {
namespace {

// All are exact: sums of integers, and programs without a transcendental function.
constexpr Implementation<IntegerProductProblem> kEntries[] = {
    {"cpu.depthwise", CreateIntegerDepthwise},
    {"cpu.dot_few", CreateIntegerFew},
    {"cpu.dot", CreateIntegerDot},
    {"cpu.packed", CreateIntegerSums},
    {"cpu.sums_first", CreateSumsThenProgram},
    {.name = "cpu.reference", .create = CreateIntegerReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<IntegerProductProblem>(kEntries); }

}  // namespace anydml::family::integer_product
