// The operands of byte products as sources of panels whose words are four steps each. Numbers, and their zero
// points, are made signed or unsigned as the instructions require, by subtracting or adding 128.
#pragma once

#include "ops/convolution/problem.h"
#include "ops/integer_product/cpu/dot_kernel.h"
#include "ops/product/blocked.h"

namespace anydml {

// The number to add to rows or columns of this type: it flips the highest bit, or is 0.
constexpr int32_t ShiftInPanels(DataType type, bool rows) {
  const bool wants_unsigned = !rows && kUnsignedColumns;
  if (wants_unsigned == (type == DataType::kUInt8)) return 0;
  return wants_unsigned ? 128 : -128;
}
constexpr uint8_t FlipInPanels(DataType type, bool rows) { return ShiftInPanels(type, rows) != 0 ? 0x80 : 0; }

// Whether each step is contiguous over all positions: the input is then a matrix with contiguous rows.
bool PositionsAreNeighbours(const ConvolutionShape& shape);

// Elements are output channels of a group; steps are its input channels with their taps.
class FilterQuads final : public PanelSource {
 public:
  // `filter`: of one matrix; row_words: as DotTile's.
  FilterQuads(const ConvolutionShape& shape, DataType type, const std::byte* filter, uint32_t row_words);
  void Pack(uint64_t first, uint64_t count, uint64_t word, uint64_t words, uint32_t width,
            float* to) const override;
  // Whether AddUp can be called.
  bool AddsUp() const { return contiguous_; }
  // The sums of elements, as in panels, over all steps.
  void AddUp(uint64_t first, uint64_t count, int32_t* sums) const;

 private:
  void PackAcross(uint64_t first, uint64_t count, uint64_t step, uint64_t words, uint32_t width,
                  float* to) const;
  void PackApart(uint64_t first, uint64_t count, uint64_t step, uint64_t words, uint32_t width,
                 float* to) const;
  void PackPairs(uint64_t first, uint64_t count, uint64_t step, uint64_t words, uint32_t width,
                 float* to) const;
  void PackBlock(uint64_t first, uint64_t count, uint64_t step, uint32_t width, float* to) const;
  void LoadRow(uint64_t element, uint64_t step, uint64_t words, float* to) const;

  const ConvolutionShape& shape_;
  uint8_t flip_;
  const std::byte* data_;
  uint32_t row_words_;
  bool contiguous_;  // steps are contiguous
};

// Elements are output positions in row-major order; steps as above. `zero` is the value outside the input.
class WindowQuads final : public PanelSource {
 public:
  // `input`: of one matrix; column_words: as DotTile's, more than 1 only in panels of 12.
  WindowQuads(const ConvolutionShape& shape, DataType type, const std::byte* input, std::byte zero,
              uint32_t column_words)
      : shape_(shape),
        flip_(FlipInPanels(type, /*rows=*/false)),
        data_(input),
        zero_(zero),
        column_words_(column_words),
        neighbours_(PositionsAreNeighbours(shape)) {}
  void Pack(uint64_t first, uint64_t count, uint64_t word, uint64_t words, uint32_t width,
            float* to) const override;
  // As in FilterQuads.
  bool AddsUp() const { return neighbours_; }
  void AddUp(uint64_t first, uint64_t count, int32_t* sums) const;

 private:
  void PackNeighbours(uint64_t first, uint64_t count, uint64_t step, uint64_t words, uint32_t width,
                      float* to) const;

  const ConvolutionShape& shape_;
  uint8_t flip_;
  const std::byte* data_;
  std::byte zero_;
  uint32_t column_words_;
  bool neighbours_;
};

}  // namespace anydml
