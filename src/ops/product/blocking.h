// The block sizes of a product.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/product/micro_kernel.h"

namespace anydml::blocking {

// A panel of B (a tile's columns) with one block of steps stays in L1, as do its tiles' sums; a block of A,
// or of B if rows are few, in L2; a block of B in the next level.
inline constexpr uint64_t kPanelFloats = 6144;
// with fewer, sums are read and written too often; bytes need fewer
inline constexpr uint64_t kLeastSteps = 256;
inline constexpr uint64_t kLeastWords = 64;
inline constexpr uint64_t kMaxSteps = 512;
inline constexpr uint64_t kMaxExactSteps = 256;  // 256 products of numbers up to 255 are exact as FLOAT32
inline constexpr uint64_t kNearSteps = 128;
inline constexpr uint64_t kWholeSteps = 16;
inline constexpr uint64_t kRowsAtATime = 128;
inline constexpr uint64_t kColumnsAtATime = 1024;
inline constexpr uint64_t kColumnsOfFewRows = 384;
inline constexpr uint64_t kColumnsOfAllRows = 512;
inline constexpr uint64_t kFewColumns = 256;
inline constexpr uint64_t kNearFloats = uint64_t{3} << 17;
inline constexpr uint64_t kDeepFloats = uint64_t{1} << 20, kDeepSteps = 1024;
inline constexpr uint64_t kLine = 16;  // floats per cache line

constexpr uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

struct Blocking {
  uint64_t steps, rows, columns;
  uint64_t deep;          // steps that are packed at a time: a multiple of `steps`, or all
  uint64_t rows_of_sums;  // rows of sums in scratch

  // The blocks that fit into `floats` of scratch. With one block of steps at a time, they fit for any part
  // that is not larger in m, n or k than the one given to ProductScratch.
  Blocking(const MicroKernel& kernel, uint64_t m, uint64_t n, uint64_t k, bool sums_in_scratch,
           uint64_t floats, uint64_t max_steps, bool many_steps) {
    // Kernels that process several steps at a time take blocks up to kWholeSteps; only the last block may
    // have another number.
    const uint64_t least = many_steps ? kMaxSteps : kernel.bytes ? kLeastWords : kLeastSteps;
    const uint64_t most = std::min(std::max(kPanelFloats / kernel.columns, least), max_steps);
    steps = std::min(k, most / kWholeSteps * kWholeSteps);
    rows = std::min(RoundUp(m, kernel.rows), RoundUp(kRowsAtATime, kernel.rows));
    const auto set_columns = [&](uint64_t most) {
      columns = std::min(RoundUp(n, kernel.columns), RoundUp(most, kernel.columns));
    };
    const auto set_deep = [&](uint64_t value) {
      deep = value;
      rows_of_sums = deep < k ? m : std::min(m, rows);
    };
    set_columns(kColumnsAtATime);
    set_deep(steps);
    const Blocking shallow = *this;
    if (m <= rows) {
      if (k * (rows + kColumnsOfFewRows) <= kNearFloats) {
        set_columns(kColumnsOfFewRows);
        set_deep(k);
      }
    } else if (n > kFewColumns) {
      const auto most_steps = [&] {
        const uint64_t most = std::min(kDeepSteps, kDeepFloats / columns);
        return std::min(k, std::max<uint64_t>(1, most / steps) * steps);
      };
      set_deep(most_steps());
      if (sums_in_scratch && deep < k) {  // Sums of all rows are kept, of fewer columns.
        set_columns(kColumnsOfAllRows);
        set_deep(most_steps());
      }
    }
    if (Floats(sums_in_scratch) > floats) *this = shallow;
  }

  uint64_t FloatsOfRows() const { return (deep + kLine) * rows; }
  uint64_t Floats(bool sums_in_scratch) const {
    return FloatsOfRows() + deep * columns + (sums_in_scratch ? rows_of_sums * columns : 0);
  }
};

}  // namespace anydml::blocking
