#include "ops/softmax/problem.h"

namespace anydml::family::softmax {
namespace {

constexpr Implementation<SoftmaxProblem> kEntries[] = {
    {"cpu.argmax", CreateHardmaxCpu},
    {"cpu.blocks", CreateSoftmaxCpu, nullptr, {}, SoftmaxBound},
    {.name = "cpu.reference", .create = CreateSoftmaxReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<SoftmaxProblem>(kEntries); }

}  // namespace anydml::family::softmax
