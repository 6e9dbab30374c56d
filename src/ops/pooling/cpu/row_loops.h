// Loops over rows of elements that are side by side, or of windows. Compiled for every SIMD target; they are
// written so that compilers make vectors of them.
#pragma once

#include <cstdint>

#include "base/data_type.h"

namespace anydml::pooling {

inline constexpr uint32_t kRowsAtOnce = 3;

// Maxima of keys: elements, but for FLOAT16, whose keys are integers. NaNs and the sign of zero are left to
// the caller.
struct MaxLoops {
  // best[i] becomes the largest of itself, unless `first`, and elements i of the rows. Whether there was a
  // NaN.
  bool (*rows)(const void* const (&rows)[kRowsAtOnce], uint64_t count, bool first, void* best);
  // The largest key of `count` elements side by side, one at least. Whether there was a NaN.
  bool (*plane)(const void* plane, uint64_t count, void* best);
  // out[i] becomes the largest of itself, unless `first`, and of keys i * stride of the columns. One key
  // behind the last of a column may be read.
  void (*columns)(const void* const (&columns)[kRowsAtOnce], uint64_t stride, uint64_t count, bool first,
                  void* out);
  // Keys become elements, in place. Whether -0, which may hide +0, is among them.
  bool (*finish)(void* keys, uint64_t count);
};

// Null functions: there are no loops for the type.
MaxLoops FindMaxLoops(DataType type);

struct SumLoops {
  // sums[i], or 0 if `first`, plus elements i of `used` rows, one after the other.
  void (*rows)(const float* const (&rows)[kRowsAtOnce], uint32_t used, uint64_t count, bool first,
               float* sums);
  // sums[i] becomes the sum of elements i of the rows of a plane without gaps, one after the other; false
  // where there is nothing better for rows of this width.
  bool (*rows_of_plane)(const float* plane, uint64_t rows, uint64_t width, float* sums);
  // As `rows`, of elements i * stride; one behind the last may be read.
  void (*columns)(const float* const (&columns)[kRowsAtOnce], uint32_t used, uint64_t stride, uint64_t count,
                  bool first, float* sums);
  // Of more than kColumnsInARow columns, `step` apart.
  float (*wide)(const float* columns, uint64_t step, uint32_t count);
  // Of a plane of rows without gaps, of up to kColumnsInARow elements.
  float (*plane)(const float* plane, uint64_t rows, uint32_t width);
  // sums[i] / (divisors[i] * factor), or 0 where that is 0.
  void (*divide)(float* sums, const float* divisors, float factor, uint64_t count);
  // |x|^p and its root, p being 1 or 2.
  void (*powers)(float* x, uint32_t p, uint64_t count);
  void (*roots)(float* x, uint32_t p, uint64_t count);
};

SumLoops FindSumLoops();

}  // namespace anydml::pooling
