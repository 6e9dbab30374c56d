// Index tensors of any type as parameters of GPU kernels.
#pragma once

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
};

}  // namespace anydml
