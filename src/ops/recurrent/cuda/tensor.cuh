// Tensors of recurrent networks, as kernels use them.
#pragma once

#include <cuda_runtime.h>

#include "ops/device/cuda/reduce.cuh"
#include "ops/recurrent/plan.h"

namespace anydml::recurrent_cuda {

using namespace recurrent;

__device__ inline float Canonical(float x) { return reduce::IsNan(x) ? lane::kNan : x; }

__device__ inline uint64_t PlaceOf(const DeviceTensor& tensor, uint64_t a, uint64_t b, uint64_t c,
                                   uint64_t d) {
  return a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2] + d * tensor.strides[3];
}

}  // namespace anydml::recurrent_cuda
