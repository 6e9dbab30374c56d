// The implementations for CUDA.
#pragma once

#include "ops/pooling/problem.h"

namespace anydml {

CreateFunction<PoolingProblem> CreatePoolingCudaTiles, CreatePoolingCudaChannels, CreatePoolingCudaPlanes,
    CreatePoolingCudaWindows;
CreateFunction<PoolingGradProblem> CreatePoolingGradCuda;
CreateFunction<MaxUnpoolingProblem> CreateMaxUnpoolingCuda;

}  // namespace anydml
