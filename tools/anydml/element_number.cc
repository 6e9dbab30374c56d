#include "anydml/element_number.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"

namespace anydml::tools {
namespace {

// Calls `visit` with a null pointer to the C++ type of a data type other than FLOAT16.
template <typename Visit>
auto WithType(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::kUInt64:
      return visit(static_cast<uint64_t*>(nullptr));
    case DataType::kUInt32:
      return visit(static_cast<uint32_t*>(nullptr));
    case DataType::kUInt16:
      return visit(static_cast<uint16_t*>(nullptr));
    case DataType::kUInt8:
      return visit(static_cast<uint8_t*>(nullptr));
    case DataType::kInt64:
      return visit(static_cast<int64_t*>(nullptr));
    case DataType::kInt32:
      return visit(static_cast<int32_t*>(nullptr));
    case DataType::kInt16:
      return visit(static_cast<int16_t*>(nullptr));
    case DataType::kInt8:
      return visit(static_cast<int8_t*>(nullptr));
    case DataType::kFloat32:
      return visit(static_cast<float*>(nullptr));
    default:
      return visit(static_cast<double*>(nullptr));
  }
}

// Without undefined conversions of what the type cannot hold.
template <typename T>
T Convert(double number) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (!(number < std::ldexp(1.0, Limits::digits))) return Limits::max();
    if (number < static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<T>(std::floor(number));
  } else {
    return static_cast<T>(number);
  }
}

}  // namespace

double ElementToDouble(DataType type, const std::byte* element) {
  if (type == DataType::kFloat16) {
    Half half;
    std::memcpy(&half, element, sizeof(half));
    return ToFloat(half);
  }
  return WithType(type, [element]<typename T>(T*) {
    T value;
    std::memcpy(&value, element, sizeof(value));
    return static_cast<double>(value);
  });
}

Scalar ElementFromDouble(DataType type, double number) {
  Scalar scalar{};
  if (type == DataType::kFloat16) {
    const Half half = ToHalf(static_cast<float>(number));
    std::memcpy(scalar.bytes.data(), &half, sizeof(half));
    return scalar;
  }
  WithType(type, [number, &scalar]<typename T>(T*) {
    const T value = Convert<T>(number);
    std::memcpy(scalar.bytes.data(), &value, sizeof(value));
  });
  return scalar;
}

}  // namespace anydml::tools
