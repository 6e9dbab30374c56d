#include "ops/pooling/cpu/kernels.h"
#include "ops/pooling/problem.h"

namespace anydml::family::pooling {
namespace {

constexpr Implementation<PoolingProblem> kPooling[] = {
    {"cpu.max_channels", CreatePoolingMaxChannels},
    {"cpu.max_rows", CreatePoolingMaxRows},
    {"cpu.max_scan", CreatePoolingScan},
    {"cpu.sum_channels", CreatePoolingSumChannels, nullptr, {}, PoolingBound},
    {"cpu.sum_rows", CreatePoolingSumRows, nullptr, {}, PoolingBound},
    {.name = "cpu.reference",
     .create = CreatePoolingReference,
     .bound = PoolingBound,
     .abilities = kIsReference},
};

constexpr Implementation<PoolingGradProblem> kGrad[] = {
    {"cpu.collect", CreatePoolingGradCpu},
    {.name = "cpu.reference", .create = CreatePoolingGradReference, .abilities = kIsReference},
};

constexpr Implementation<MaxUnpoolingProblem> kUnpooling[] = {
    {"cpu.scatter", CreateMaxUnpoolingCpu},
    {.name = "cpu.reference", .create = CreateMaxUnpoolingReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) {
  column->Add<PoolingProblem>(kPooling);
  column->Add<PoolingGradProblem>(kGrad);
  column->Add<MaxUnpoolingProblem>(kUnpooling);
}

}  // namespace anydml::family::pooling
