// The number in an enumeration that a caller passed. Callers may pass any number, and loading one outside the
// enumeration's range is undefined behaviour (UBSan reports it); copying its bytes is not.
#pragma once

#include <cstdint>
#include <cstring>

namespace anydml::dml {

template <typename Enum>
uint32_t RawEnum(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(uint32_t));
  uint32_t raw;
  memcpy(&raw, &value, sizeof(raw));  // g++ 12's bit_cast would load the enumeration
  return raw;
}

}  // namespace anydml::dml
