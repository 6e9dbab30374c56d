// A matrix product in blocks that fit the caches. Operands come through packers, so that any layout, data
// type or window of an image can be one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/kernel.h"
#include "ops/gemm/cpu/micro_kernel.h"

namespace anydml {

// Some rows of A, or columns of B.
class PanelSource {
 public:
  // Puts elements [first, first + count) of steps [step, step + steps) to `to`: a step's elements are
  // neighbours, steps are `width` apart; elements between `count` and `width` become 0.
  virtual void Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                    float* to) const = 0;

 protected:
  ~PanelSource() = default;
};

// Takes rows of the product when they are complete.
class ProductSink {
 public:
  // `sums` are those of columns [column, column + count) of a row. They may be changed.
  virtual void Finish(uint64_t row, uint64_t column, uint64_t count, float* sums) const = 0;

 protected:
  ~ProductSink() = default;
};

// A part of an m x n product over k steps.
struct ProductPart {
  uint64_t row, rows;
  uint64_t column, columns;
  uint64_t k;
  // Where sums are kept while not all steps are done: element (row, column) of the part. Null: in scratch.
  float* sums;
  uint64_t sums_stride;
};

// Floats of scratch that RunProduct needs for a part of this size, with or without sums in scratch.
uint64_t ProductScratch(uint64_t rows, uint64_t columns, uint64_t k, bool sums_in_scratch);

// Every sum is added up in the same order, whatever the parts. `sink` may be null where sums are not in
// scratch: they are the result.
void RunProduct(const ProductPart& part, const PanelSource& a, const PanelSource& b, const ProductSink* sink,
                float* scratch);

// How to cut an m x n product into `parts` or fewer, for as many threads.
struct ProductGrid {
  uint32_t rows = 1;
  uint32_t columns = 1;
  uint64_t row_step, column_step;  // whole tiles
};
ProductGrid CutProduct(uint64_t m, uint64_t n, uint32_t parts);

}  // namespace anydml
