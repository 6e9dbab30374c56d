#include "ops/gemm/problem.h"
#include "ops/gemm/softmax.h"

namespace anydml::family::gemm {
namespace {

constexpr Implementation<GemmProblem> kGemm[] = {
    {"cpu.few", CreateGemmFew, nullptr, {}, GemmBound},
    {"cpu.packed", CreateGemmPacked, nullptr, {}, GemmBound},
    {.name = "cpu.reference", .create = CreateGemmReference, .abilities = kIsReference},
};

constexpr Implementation<GemmSoftmaxProblem> kGemmSoftmax[] = {
    {"cpu.then_softmax", CreateGemmThenSoftmax},
    {.name = "cpu.reference", .create = CreateGemmThenSoftmax, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) {
  column->Add<GemmProblem>(kGemm);
  column->Add<GemmSoftmaxProblem>(kGemmSoftmax);
}

}  // namespace anydml::family::gemm
