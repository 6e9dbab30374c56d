#include "ops/integer_product/problem.h"

namespace anydml::family::integer_product {
namespace {

// All are exact: sums of integers, and programs without a transcendental function.
constexpr Implementation<IntegerProductProblem> kEntries[] = {
    {"cuda.tiled", CreateIntegerSumsCuda},
    {"cuda.sums_first", CreateSumsThenProgram},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<IntegerProductProblem>(kEntries); }

}  // namespace anydml::family::integer_product
