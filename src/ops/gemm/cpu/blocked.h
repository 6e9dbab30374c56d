// A matrix product in blocks that fit the caches. Operands come through packers, so that any layout, data
// type or window of an image can be one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/kernel.h"
#include "ops/gemm/cpu/micro_kernel.h"

namespace anydml {

// Some rows of A, or columns of B.
class PanelSource {
 public:
  // Puts elements [first, first + count) of steps [step, step + steps) to `to`, in panels of `width`
  // elements, one after the other: a step's elements are neighbours, steps are `width` apart. What the last
  // panel has behind its elements becomes 0.
  virtual void Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                    float* to) const = 0;
  // The same of FLOAT16 elements, as they are. False: nothing was done, they cannot be had so.
  virtual bool PackHalves(uint64_t /*first*/, uint64_t /*count*/, uint64_t /*step*/, uint64_t /*steps*/,
                          uint32_t /*width*/, uint16_t* /*to*/) const {
    return false;
  }
  // FLOAT32 or FLOAT16 in memory.
  struct Place {
    const std::byte* first = nullptr;
    uint64_t stride = 0;  // in numbers
    bool halves = false;
  };
  // Where elements from `first` on lie, if steps are neighbours: elements are `stride` apart. Else null.
  virtual Place FindRows(uint64_t /*first*/) const { return {}; }
  // The same where elements are neighbours: steps are `stride` apart.
  virtual Place FindSteps(uint64_t /*first*/) const { return {}; }

 protected:
  ~PanelSource() = default;
};

// Packed while the product is computed, or already: panels of a tile's width, each with all of its steps.
struct ProductOperand {
  ProductOperand(const PanelSource& panels) : source(&panels) {}  // NOLINT(google-explicit-constructor)
  explicit ProductOperand(const float* panels) : packed(panels) {}
  explicit ProductOperand(const uint16_t* panels) : packed_halves(panels) {}

  const PanelSource* source = nullptr;
  const float* packed = nullptr;
  const uint16_t* packed_halves = nullptr;  // FLOAT16, which is converted block by block
};

// Takes rows of the product when they are complete.
template <typename Sum>
class SumSink {
 public:
  // `sums` are those of columns [column, column + count) of a row. They may be changed.
  virtual void Finish(uint64_t row, uint64_t column, uint64_t count, Sum* sums) const = 0;
  // Of `rows` rows, whose sums are `stride` apart.
  virtual void FinishRows(uint64_t row, uint64_t rows, uint64_t column, uint64_t count, Sum* sums,
                          uint64_t stride) const {
    for (uint64_t i = 0; i < rows; ++i) Finish(row + i, column, count, sums + i * stride);
  }

 protected:
  ~SumSink() = default;
};
using ProductSink = SumSink<float>;

// A part of an m x n product over k steps. Sums are float, or int32_t, which wraps: panels of whole numbers
// up to 255 are added up without rounding for as many steps as are done at a time.
template <typename Sum>
struct PartOf {
  uint64_t row, rows;
  uint64_t column, columns;
  uint64_t k;
  // Where sums are kept while not all steps are done: element (row, column) of the part. Null: in scratch.
  Sum* sums;
  uint64_t sums_stride;
  // Fewer steps at a time than otherwise. All parts of a product have the same: sums are those of such
  // blocks.
  bool few_steps = false;
  bool many_steps = false;  // more, likewise
  // Operands of the product that will probably come next, as far apart as those of this one; null: nobody
  // knows.
  const std::byte* next_a = nullptr;
  const std::byte* next_b = nullptr;
};
using ProductPart = PartOf<float>;

// Up to so many rows B is not packed ahead of a product, if its elements are neighbours and kernels can do
// without (MicroKernel::packing).
inline constexpr uint64_t kMostRowsOfSteps = 128;

// Floats of scratch that RunProduct needs for parts up to this size, with or without sums in scratch; whole
// cache lines.
uint64_t ProductScratch(uint64_t rows, uint64_t columns, uint64_t k, bool sums_in_scratch,
                        const MicroKernel& kernel = GemmMicroKernel());

// Every sum is added up in the same order, whatever the parts. `sink` may be null where sums are not in
// scratch: they are the result. A part of a packed operand begins with a panel.
template <typename Sum>
void RunProduct(const PartOf<Sum>& part, const ProductOperand& a, const ProductOperand& b,
                const SumSink<Sum>* sink, std::span<float> scratch,
                const MicroKernel& kernel = GemmMicroKernel());

}  // namespace anydml
