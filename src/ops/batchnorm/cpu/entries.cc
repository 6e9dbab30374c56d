#include "ops/batchnorm/problem.h"

namespace anydml::family::batchnorm {
namespace {

constexpr Implementation<BatchNormProblem> kEntries[] = {
    {"cpu.rows", CreateBatchNormRows, nullptr, {}, BatchNormBound},
    {"cpu.steps", CreateBatchNormSteps, nullptr, {}, BatchNormBound},
    {.name = "cpu.reference", .create = CreateBatchNormReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<BatchNormProblem>(kEntries); }

}  // namespace anydml::family::batchnorm
