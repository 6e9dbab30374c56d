// Taps outside the input. Kernels that read zeros there multiply them by weights, which gives NaN if a weight
// is infinite or NaN: sums with such filters are recomputed without those taps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/convolution/problem.h"
#include "ops/numbers/load_store.h"

namespace anydml {

// Positions of the output that have taps outside the input.
class OutsideTaps {
 public:
  explicit OutsideTaps(const ConvolutionShape& shape);

  bool any() const { return any_; }

  // Calls body(position) for those among [begin, end), in row-major order.
  template <typename Body>
  void ForPositions(uint64_t begin, uint64_t end, Body&& body) const {
    const uint64_t columns = sizes_[kLast];
    for (uint64_t row = begin; row < end;) {  // or the rest of one
      const uint64_t line = row / columns, column = row % columns;
      const uint64_t row_end = std::min(end, row + (columns - column));
      const bool whole = all_[1].Has(line % sizes_[1]) && all_[0].Has(line / sizes_[1]);
      for (uint64_t at = row, x = column; at < row_end; ++at, ++x) {
        if (whole && all_[kLast].Has(x)) {
          at += all_[kLast].end - x - 1;
          x = all_[kLast].end - 1;
        } else {
          body(at);
        }
      }
      row = row_end;
    }
  }

 private:
  static constexpr uint32_t kLast = kMaxSpatial - 1;

  // The outputs of a dimension that have all their taps inside.
  struct Range {
    uint64_t begin = 0, end = 0;
    bool Has(uint64_t at) const { return at >= begin && at < end; }
  };
  uint64_t sizes_[kMaxSpatial];
  Range all_[kMaxSpatial];
  bool any_;
};

bool AreFinite(const float* numbers, uint64_t count);

// The sum of an output's taps inside the input, over some steps (channels with their taps) of a group.
// `input`: of the tensor; `weights`: of the steps from `step` on.
double SumInside(const ConvolutionShape& shape, DataType type, const std::byte* input, uint64_t matrix,
                 uint64_t position, uint64_t step, uint64_t steps, const float* weights);

}  // namespace anydml
