// Copies elements through loops over both sides, bit for bit and in an order that suits the caches. All
// operators that only move elements use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/common/loop_nest.h"

namespace anydml {

class NestCopy {
 public:
  enum Operand { kFrom, kTo };

  // `nest` visits the target in ascending order of addresses (SortedByStride). Strides of the source may be
  // negative, as two's complement, or 0. `streams`: see StreamCopy; only for large copies.
  NestCopy(const LoopNest<2>& nest, uint32_t element_bytes, bool streams);

  uint64_t bytes() const { return bytes_; }
  // For a WorkEstimate.
  uint64_t work_bytes() const;

  // Runs share `part` of `parts` nearly equal ones; parts may run at the same time.
  void Run(const std::byte* from, std::byte* to, uint32_t part, uint32_t parts) const;

 private:
  using Loop = LoopNest<2>::Loop;

  enum class Way : uint8_t {
    kRuns,          // along the innermost loop
    kPeriods,       // the same contiguous run, repeated
    kSquares,       // source and target are contiguous along different loops: through tiles
    kInterleave,    // kSquares with 2 to 4 columns and contiguous rows of the target
    kDeinterleave,  // kSquares with 2 to 4 rows and contiguous columns of the source
  };

  void Widen(LoopNest<2>* nest);
  void Choose();
  void OrderBySource();
  void ChooseSquares(uint32_t across);
  bool GoesByElements() const;

  template <typename T>
  void RunItems(const T* from, T* to, uint64_t begin, uint64_t end) const;
  template <typename T>
  void CopyBlock(const T* from, T* to, uint64_t rows, uint64_t columns, uint64_t rows_ahead) const;

  uint64_t bytes_;
  uint32_t width_;  // of an element, after Widen
  bool streams_;
  bool whole_lines_ = false;  // runs are whole cache lines, and begin at one if the target does
  bool turns_lines_ = false;  // of kSquares: squares are streamed to the target at once, without a tile
  Way way_ = Way::kRuns;
  LoopNest<2> outer_;
  Loop rows_;     // of kSquares: contiguous in the source; of kPeriods: the repetitions
  Loop columns_;  // innermost
  // An item of work has up to this many rows and columns of an iteration of the outer loops.
  uint64_t item_rows_ = 1, item_columns_ = 1;
  uint64_t row_items_ = 1, column_items_ = 1;
};

}  // namespace anydml
