#include "client/values/element_number.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/dispatch.h"
#include "client/packed_elements.h"

namespace anydml::client {
namespace {

// Avoids undefined conversions of numbers that the type cannot represent.
template <typename T>
T Convert(double number) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(static_cast<float>(number));
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (!(number < std::ldexp(1.0, Limits::digits))) return Limits::max();
    if (number < static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<T>(std::floor(number));
  } else {
    return static_cast<T>(number);
  }
}

}  // namespace

double ElementToDouble(DataType type, const std::byte* data, uint64_t index) {
  if (IsFourBits(type)) return FourBits(type, data, index);
  return DispatchByType(type, [element = data + index * (BitSize(type) / 8)]<typename T>() -> double {
    T value;
    std::memcpy(&value, element, sizeof(value));
    if constexpr (std::is_same_v<T, Half>) {
      return ToFloat(value);
    } else {
      return static_cast<double>(value);
    }
  });
}

double ScalarToDouble(DataType type, const Scalar& scalar) {
  return ElementToDouble(Unpacked(type), reinterpret_cast<const std::byte*>(scalar.bytes.data()), 0);
}

Scalar ScalarFromDouble(DataType type, double number) {
  Scalar scalar{};
  if (type == DataType::kUInt4) number = std::clamp(number, 0.0, 15.0);
  if (type == DataType::kInt4) number = std::clamp(number, -8.0, 7.0);
  DispatchByType(Unpacked(type), [number, &scalar]<typename T>() {
    const T value = Convert<T>(number);
    std::memcpy(scalar.bytes.data(), &value, sizeof(value));
  });
  return scalar;
}

}  // namespace anydml::client
