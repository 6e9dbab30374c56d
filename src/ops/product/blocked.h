// A matrix product in blocks that fit the caches. Operands come through packers, so that any layout, data
// type or window of an image can be an operand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/kernel.h"
#include "ops/product/micro_kernel.h"

namespace anydml {

// The rows of A, or the columns of B.
class PanelSource {
 public:
  // Packs elements [first, first + count) of steps [step, step + steps) to `to`: consecutive panels of
  // `width` elements, in which a step's elements are contiguous and steps are `width` apart. The last panel
  // is padded with 0.
  virtual void Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                    float* to) const = 0;
  // The same for FLOAT16 elements, unconverted. False if the source cannot do that; then nothing was written.
  virtual bool PackHalves(uint64_t /*first*/, uint64_t /*count*/, uint64_t /*step*/, uint64_t /*steps*/,
                          uint32_t /*width*/, uint16_t* /*to*/) const {
    return false;
  }
  // FLOAT32 or FLOAT16 in memory.
  struct Place {
    const std::byte* first = nullptr;
    uint64_t stride = 0;  // in elements
    bool halves = false;
  };
  // The place of the elements from `first` on if their steps are contiguous: elements are `stride` apart.
  // Otherwise null.
  virtual Place FindRows(uint64_t /*first*/) const { return {}; }
  // The same if elements are contiguous: steps are `stride` apart.
  virtual Place FindSteps(uint64_t /*first*/) const { return {}; }

 protected:
  ~PanelSource() = default;
};

// An operand, packed during the product or before: panels of a tile's width, each with all its steps.
struct ProductOperand {
  ProductOperand(const PanelSource& panels) : source(&panels) {}  // NOLINT(google-explicit-constructor)
  explicit ProductOperand(const float* panels) : packed(panels) {}
  explicit ProductOperand(const uint16_t* panels) : packed_halves(panels) {}

  const PanelSource* source = nullptr;
  const float* packed = nullptr;
  const uint16_t* packed_halves = nullptr;  // FLOAT16, converted block by block
};

// Receives rows of the product when they are complete.
template <typename Sum>
class SumSink {
 public:
  // `sums` are those of columns [column, column + count) of a row. Finish may change them.
  virtual void Finish(uint64_t row, uint64_t column, uint64_t count, Sum* sums) const = 0;
  // For `rows` rows whose sums are `stride` apart.
  virtual void FinishRows(uint64_t row, uint64_t rows, uint64_t column, uint64_t count, Sum* sums,
                          uint64_t stride) const {
    for (uint64_t i = 0; i < rows; ++i) Finish(row + i, column, count, sums + i * stride);
  }

 protected:
  ~SumSink() = default;
};
using ProductSink = SumSink<float>;

// A part of an m x n product over k steps. Sums are float, or int32_t, which wraps: panels of integers up to
// 255 are summed exactly in FLOAT32 for as many steps as a block has.
template <typename Sum>
struct PartOf {
  uint64_t row, rows;
  uint64_t column, columns;
  uint64_t k;
  // Where partial sums are kept: element (row, column) of the part. Null: in scratch.
  Sum* sums;
  uint64_t sums_stride;
  // Fewer steps per block than otherwise. All parts of a product must have the same value, because blocks
  // determine the order of additions.
  bool few_steps = false;
  bool many_steps = false;  // more steps, likewise
  // Operands of the product that probably comes next, with the strides of this one; null: unknown.
  const std::byte* next_a = nullptr;
  const std::byte* next_b = nullptr;
};
using ProductPart = PartOf<float>;

// Up to this many rows, B is not packed before a product if its elements are contiguous and kernels can pack
// it as they go (MicroKernel::packing).
inline constexpr uint64_t kMostRowsOfSteps = 128;

// The floats of scratch that RunProduct needs for parts up to this size, with or without sums in scratch;
// whole cache lines.
uint64_t ProductScratch(uint64_t rows, uint64_t columns, uint64_t k, bool sums_in_scratch,
                        const MicroKernel& kernel = GemmMicroKernel());

// Every sum is added in the same order, whatever the parts. `sink` may be null if sums are not in scratch:
// they are the result. A part of a packed operand begins with a panel.
template <typename Sum>
void RunProduct(const PartOf<Sum>& part, const ProductOperand& a, const ProductOperand& b,
                const SumSink<Sum>* sink, std::span<float> scratch,
                const MicroKernel& kernel = GemmMicroKernel());

}  // namespace anydml
