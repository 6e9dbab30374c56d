#include "ops/pooling/cuda/kernels.h"
#include "ops/pooling/problem.h"

namespace anydml::family::pooling {
namespace {

constexpr Implementation<PoolingProblem> kPooling[] = {
    {"cuda.tiles", CreatePoolingCudaTiles},
    {"cuda.channels", CreatePoolingCudaChannels},
    {"cuda.planes", CreatePoolingCudaPlanes},
    {"cuda.windows", CreatePoolingCudaWindows, nullptr, {}, PoolingBound},
};

constexpr Implementation<PoolingGradProblem> kGrad[] = {
    {"cuda.collect", CreatePoolingGradCuda},
};

constexpr Implementation<MaxUnpoolingProblem> kUnpooling[] = {
    {"cuda.scatter", CreateMaxUnpoolingCuda},
};

}  // namespace

void RegisterCuda(Column* column) {
  column->Add<PoolingProblem>(kPooling);
  column->Add<PoolingGradProblem>(kGrad);
  column->Add<MaxUnpoolingProblem>(kUnpooling);
}

}  // namespace anydml::family::pooling
