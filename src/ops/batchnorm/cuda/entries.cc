#include "ops/batchnorm/problem.h"

namespace anydml::family::batchnorm {
namespace {

constexpr Implementation<BatchNormProblem> kEntries[] = {
    {"cuda.rows", CreateBatchNormRowsCuda, nullptr, {}, BatchNormBound},
    {"cuda.steps", CreateBatchNormSteps, nullptr, {}, BatchNormBound},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<BatchNormProblem>(kEntries); }

}  // namespace anydml::family::batchnorm
