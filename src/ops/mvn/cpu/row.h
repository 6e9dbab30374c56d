// A row to be normalised, as the functions for the SIMD targets take it.
#pragma once

#include <cstdint>

namespace anydml {

struct MvnRow {
  const float* x;
  float* y;            // may be x
  const float* scale;  // null: there is none, or it is in `factor`
  const float* bias;   // null: there is none, or it is in `offset`
  const float* next;   // a row that will be read next: the cache may have it already
  uint64_t length;
  bool use_mean, use_variance;
  float epsilon;
  float factor, offset;
};

}  // namespace anydml
