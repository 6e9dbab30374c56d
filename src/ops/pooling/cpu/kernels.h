// The CPU's implementations.
#pragma once

#include "ops/pooling/problem.h"

namespace anydml {

CreateFunction<PoolingProblem> CreatePoolingMaxRows, CreatePoolingMaxChannels, CreatePoolingSumRows,
    CreatePoolingSumChannels, CreatePoolingScan;
CreateFunction<PoolingGradProblem> CreatePoolingGradCpu;
CreateFunction<MaxUnpoolingProblem> CreateMaxUnpoolingCpu;

}  // namespace anydml
