// A row to be normalised, as the functions for the SIMD targets take it.
#pragma once

#include <cstdint>

namespace anydml {

// Addresses of FLOAT32 or FLOAT16 elements.
struct MvnRow {
  const void* x;
  void* y;
  const void* scale;  // null: there is none, or it is in `factor`
  const void* bias;   // null: there is none, or it is in `offset`
  uint64_t length;
  bool use_mean, use_variance;
  float epsilon;
  float factor, offset;
};

}  // namespace anydml
