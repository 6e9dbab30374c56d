// Reads tensors of indices.
#pragma once

#include <cuda_runtime.h>

#include "ops/device/indices.h"

namespace anydml {

// Index number `at`, extended to 64 bits.
__device__ inline int64_t LoadIndex(const DeviceIndices& indices, uint64_t at) {
  if (indices.wide) return __ldg(reinterpret_cast<const long long*>(indices.data) + at);
  const uint32_t raw = __ldg(reinterpret_cast<const uint32_t*>(indices.data) + at);
  return indices.is_signed ? int64_t{static_cast<int32_t>(raw)} : int64_t{raw};
}

}  // namespace anydml
