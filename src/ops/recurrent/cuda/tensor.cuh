// Tensors of recurrent networks, as kernels see them.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <optional>

#include "ops/reduce/cuda/device.cuh"
#include "schema/tensor_desc.h"

namespace anydml::recurrent_cuda {

struct DeviceTensor {
  std::byte* data;  // null: absent
  uint64_t strides[4];
};

// `data` counts only where there is a tensor.
inline DeviceTensor TensorOf(const std::optional<TensorDesc>& tensor, std::byte* data = nullptr) {
  DeviceTensor result = {};
  if (!tensor) return result;
  result.data = data;
  std::copy_n(tensor->strides.begin(), 4, result.strides);
  return result;
}

__device__ inline float Canonical(float x) { return reduce::IsNan(x) ? lane::kNan : x; }

__device__ inline uint64_t PlaceOf(const DeviceTensor& tensor, uint64_t a, uint64_t b, uint64_t c,
                                   uint64_t d) {
  return a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2] + d * tensor.strides[3];
}

}  // namespace anydml::recurrent_cuda
