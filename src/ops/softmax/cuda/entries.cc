#include "ops/softmax/problem.h"

namespace anydml::family::softmax {
namespace {

constexpr Implementation<SoftmaxProblem> kEntries[] = {
    {"cuda.argmax", CreateHardmaxCuda},
    {"cuda.rows", CreateSoftmaxRowsCuda, nullptr, {}, SoftmaxBound},
    {"cuda.sets", CreateSoftmaxCuda, nullptr, {}, SoftmaxBound},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<SoftmaxProblem>(kEntries); }

}  // namespace anydml::family::softmax
