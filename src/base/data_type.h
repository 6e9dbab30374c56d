// The element types, numbered as DML_TENSOR_DATA_TYPE (checked where the two meet).
#pragma once

#include <cstdint>

namespace anydml {

enum class DataType : uint32_t {
  kUnknown = 0,
  kFloat32 = 1,
  kFloat16 = 2,
  kUInt32 = 3,
  kUInt16 = 4,
  kUInt8 = 5,
  kInt32 = 6,
  kInt16 = 7,
  kInt8 = 8,
  kFloat64 = 9,
  kUInt64 = 10,
  kInt64 = 11,
  kUInt4 = 12,
  kInt4 = 13,
};
inline constexpr uint32_t kDataTypeCount = 14;

// 0 for kUnknown and for values outside the enumeration.
constexpr uint32_t BitSize(DataType type) {
  switch (type) {
    case DataType::kFloat64:
    case DataType::kUInt64:
    case DataType::kInt64:
      return 64;
    case DataType::kFloat32:
    case DataType::kUInt32:
    case DataType::kInt32:
      return 32;
    case DataType::kFloat16:
    case DataType::kUInt16:
    case DataType::kInt16:
      return 16;
    case DataType::kUInt8:
    case DataType::kInt8:
      return 8;
    case DataType::kUInt4:
    case DataType::kInt4:
      return 4;
    case DataType::kUnknown:
      break;
  }
  return 0;
}

// "FLOAT32"; "invalid" for values outside the enumeration.
constexpr const char* Name(DataType type) {
  constexpr const char* kNames[kDataTypeCount] = {"UNKNOWN", "FLOAT32", "FLOAT16", "UINT32", "UINT16",
                                                  "UINT8",   "INT32",   "INT16",   "INT8",   "FLOAT64",
                                                  "UINT64",  "INT64",   "UINT4",   "INT4"};
  const auto value = static_cast<uint32_t>(type);
  return value < kDataTypeCount ? kNames[value] : "invalid";
}

}  // namespace anydml
