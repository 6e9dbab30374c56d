// Products of a few rows with a matrix that is read once, in place or from panels.
#pragma once

#include <cstdint>

#include "base/data_type.h"

namespace anydml {

// Columns at a time of `dot`, rows at a time of `add`.
inline constexpr uint32_t kFewAtATime = 4;
inline constexpr uint32_t kMostFewRows = 4;

struct FewRows {
  // sums[c] = the sum over `steps` of a[s] * b[c * stride + s], for kFewAtATime columns. Here and below,
  // `ahead` is the distance in elements to the data that will be read next; 0: unknown.
  void (*dot)(const float* a, const void* b, uint64_t stride, uint64_t steps, float* sums, uint64_t ahead);
  // sums[j] += the sum over `rows` (up to kFewAtATime) of a[r] * b[r * stride + j], for j below `count`.
  void (*add)(const float* a, const void* b, uint64_t stride, uint32_t rows, uint64_t count, float* sums,
              uint64_t ahead);
  // sums[r * sums_stride + c] = the sum over `steps` of a[r * a_stride + s] * panel[s * panel_columns + c],
  // for all columns of a panel: panels[0] for one row, panels[1] for two, and so on.
  using Panel = void(const float* a, uint64_t a_stride, const void* panel, uint64_t steps, float* sums,
                     uint64_t sums_stride);
  Panel* panels[kMostFewRows];
  uint32_t panel_columns;
};

// For matrices of FLOAT32 or FLOAT16 on this processor.
FewRows FindFewRows(DataType type);

}  // namespace anydml
