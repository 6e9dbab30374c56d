// Elements of the operators that compute in FLOAT32, on a device.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "base/data_type.h"

namespace anydml {

__device__ inline float LoadNumber(const void* data, uint64_t offset, DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return __half2float(static_cast<const __half*>(data)[offset]);
    case DataType::kInt8:
      return static_cast<const int8_t*>(data)[offset];
    case DataType::kUInt8:
      return static_cast<const uint8_t*>(data)[offset];
    default:
      return static_cast<const float*>(data)[offset];
  }
}

// Makes NaNs canonical.
__device__ inline float OneNan(float x) { return x != x ? __uint_as_float(0x7FC00000u) : x; }
__device__ inline uint16_t HalfBits(float x) {
  return x != x ? uint16_t{0x7E00} : __half_as_ushort(__float2half_rn(x));
}
// Rounds halves to even, then saturates.
__device__ inline int32_t ByteOf(float x, int32_t lowest) {
  const int32_t whole = __float2int_rn(x);
  return min(max(whole, lowest), lowest + 255);
}

__device__ inline void StoreNumber(void* data, uint64_t offset, DataType type, float x) {
  switch (type) {
    case DataType::kFloat16:
      static_cast<uint16_t*>(data)[offset] = HalfBits(x);
      break;
    case DataType::kInt8:
      static_cast<int8_t*>(data)[offset] = static_cast<int8_t>(ByteOf(x, -128));
      break;
    case DataType::kUInt8:
      static_cast<uint8_t*>(data)[offset] = static_cast<uint8_t>(ByteOf(x, 0));
      break;
    default:
      static_cast<float*>(data)[offset] = OneNan(x);
  }
}

}  // namespace anydml
