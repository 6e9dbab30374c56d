// Random elements: the same on every machine for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/data_type.h"

namespace anydml::client {

struct RandomValues {
  uint64_t seed = 0;
  // Uniform; for integers both ends are included.
  double low = 0;
  double high = 1;

  // Null, or what is wrong with the bounds.
  const char* Problem(DataType type) const;
  // Only without a problem. 4-bit elements take a byte each.
  void Append(DataType type, uint64_t count, std::vector<std::byte>* bytes) const;
};

}  // namespace anydml::client
