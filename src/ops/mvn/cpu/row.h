// A row to normalise, as the functions for the SIMD targets take it.
#pragma once

#include <cstdint>

namespace anydml {

struct MvnRow {
  const float* x;
  float* y;            // may be x
  const float* scale;  // null: none, or included in `factor`
  const float* bias;   // null: none, or included in `offset`
  const float* next;   // the row to prefetch; may be in the cache already
  uint64_t length;
  bool use_mean, use_variance;
  float epsilon;
  float factor, offset;
};

}  // namespace anydml
