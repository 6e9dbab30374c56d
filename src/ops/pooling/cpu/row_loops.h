// Loops over contiguous rows of elements, or of windows. Compiled for every SIMD target; they are written so
// that compilers vectorise them.
#pragma once

#include <cstdint>

#include "base/data_type.h"

namespace anydml::pooling {

inline constexpr uint32_t kRowsAtOnce = 3;

// Maxima of keys: the elements, or for FLOAT16 integers. The caller handles NaNs and the sign of zero.
struct MaxLoops {
  // best[i] becomes the largest of itself, unless `first`, and elements i of the rows. Returns whether there
  // was a NaN.
  bool (*rows)(const void* const (&rows)[kRowsAtOnce], uint64_t count, bool first, void* best);
  // The largest key of `count` contiguous elements, at least one. Returns whether there was a NaN.
  bool (*plane)(const void* plane, uint64_t count, void* best);
  // out[i] becomes the largest of itself, unless `first`, and of keys i * stride of the columns. One key
  // after the last of a column may be read.
  void (*columns)(const void* const (&columns)[kRowsAtOnce], uint64_t stride, uint64_t count, bool first,
                  void* out);
  // Converts keys to elements, in place. Returns whether -0, which may hide +0, is among them.
  bool (*finish)(void* keys, uint64_t count);
};

// The functions are null if there are no loops for the type.
MaxLoops FindMaxLoops(DataType type);

struct SumLoops {
  // sums[i], or 0 if `first`, plus elements i of `used` rows, one after the other.
  void (*rows)(const float* const (&rows)[kRowsAtOnce], uint32_t used, uint64_t count, bool first,
               float* sums);
  // sums[i] becomes the sum of elements i of a contiguous plane's rows, one after the other; false if there
  // is nothing better for rows of this width.
  bool (*rows_of_plane)(const float* plane, uint64_t rows, uint64_t width, float* sums);
  // As `rows`, of elements i * stride; one after the last may be read.
  void (*columns)(const float* const (&columns)[kRowsAtOnce], uint32_t used, uint64_t stride, uint64_t count,
                  bool first, float* sums);
  // The sum of more than kColumnsInARow columns, `step` apart.
  float (*wide)(const float* columns, uint64_t step, uint32_t count);
  // The sum of a contiguous plane with rows of up to kColumnsInARow elements.
  float (*plane)(const float* plane, uint64_t rows, uint32_t width);
  // sums[i] / (divisors[i] * factor), or 0 if that is 0.
  void (*divide)(float* sums, const float* divisors, float factor, uint64_t count);
  // |x|^p and its root, for p of 1 or 2.
  void (*powers)(float* x, uint32_t p, uint64_t count);
  void (*roots)(float* x, uint32_t p, uint64_t count);
};

SumLoops FindSumLoops();

}  // namespace anydml::pooling
