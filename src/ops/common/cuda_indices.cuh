// Tensors of indices on a device, whichever their type.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "base/data_type.h"

namespace anydml {

struct DeviceIndices {
  const std::byte* data = nullptr;
  bool wide = false;  // 64 bits
  bool is_signed = false;

  DeviceIndices() = default;
  explicit DeviceIndices(DataType type)
      : wide(BitSize(type) == 64), is_signed(type == DataType::kInt32 || type == DataType::kInt64) {}

  // Index number `at`, extended to 64 bits.
  __device__ int64_t Load(uint64_t at) const {
    if (wide) return __ldg(reinterpret_cast<const long long*>(data) + at);
    const uint32_t raw = __ldg(reinterpret_cast<const uint32_t*>(data) + at);
    return is_signed ? int64_t{static_cast<int32_t>(raw)} : int64_t{raw};
  }
};

}  // namespace anydml
