// The number in an enumeration that a caller gave us. Callers may pass any
// number, and loading one outside an enumeration's range is undefined behaviour
// (UBSan says so); copying its bytes is not.
#pragma once

#include <bit>
#include <cstdint>

namespace anydml::dml {

template <typename Enum>
uint32_t RawEnum(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(uint32_t));
  return std::bit_cast<uint32_t>(value);
}

}  // namespace anydml::dml
