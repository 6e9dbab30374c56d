// From the size of a unit to a type of that size.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/device/units.h"

namespace anydml {

// Calls f.template operator()<Unit>() with the type of that size.
template <typename F>
__host__ __device__ void DispatchByUnit(uint32_t unit_bytes, F&& f) {
  switch (unit_bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<uint4>();
  }
}

}  // namespace anydml
