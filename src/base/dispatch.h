// From a data type at run time to a C++ type: f.template operator()<T>().
#pragma once

#include <cstdint>

#include "base/data_type.h"
#include "base/half.h"

namespace anydml {

// For kernels that only move elements.
template <typename F>
auto DispatchByWidth(DataType type, F&& f) {
  switch (BitSize(type)) {
    case 8:
      return f.template operator()<uint8_t>();
    case 16:
      return f.template operator()<uint16_t>();
    case 32:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

// For kernels that use values. UINT4, INT4 and invalid types do not occur: the schema's tables exclude them
// for every operator that uses this.
template <typename F>
auto DispatchByType(DataType type, F&& f) {
  switch (type) {
    case DataType::kFloat64:
      return f.template operator()<double>();
    case DataType::kFloat16:
      return f.template operator()<Half>();
    case DataType::kUInt64:
      return f.template operator()<uint64_t>();
    case DataType::kUInt32:
      return f.template operator()<uint32_t>();
    case DataType::kUInt16:
      return f.template operator()<uint16_t>();
    case DataType::kUInt8:
      return f.template operator()<uint8_t>();
    case DataType::kInt64:
      return f.template operator()<int64_t>();
    case DataType::kInt32:
      return f.template operator()<int32_t>();
    case DataType::kInt16:
      return f.template operator()<int16_t>();
    case DataType::kInt8:
      return f.template operator()<int8_t>();
    default:
      return f.template operator()<float>();
  }
}

// For index tensors.
template <typename F>
auto DispatchByIndexType(DataType type, F&& f) {
  switch (type) {
    case DataType::kInt64:
      return f.template operator()<int64_t>();
    case DataType::kInt32:
      return f.template operator()<int32_t>();
    case DataType::kUInt64:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<uint32_t>();
  }
}

}  // namespace anydml
