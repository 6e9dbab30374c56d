#include "ops/integer_product/cpu/dot_sums.h"

#include <algorithm>

#include "ops/integer_product/cpu/quads.h"
#include "ops/numbers/load_store.h"

namespace anydml {

void DotSums::Finish(uint64_t row, uint64_t column, uint64_t count, int32_t* sums) const {
  Correct(row, column, count, reinterpret_cast<uint32_t*>(sums));
  if (requantizer_ != nullptr) return requantizer_->Put(arguments_, index_, row, column, count, sums);
  if (!in_output_) Scatter(row, column, count, sums);
}

void DotSums::Scatter(uint64_t row, uint64_t column, uint64_t count, const int32_t* sums) const {
  auto* const output =
      reinterpret_cast<int32_t*>(arguments_.outputs[0].data) + shape_.output.Matrix(index_[0], index_[1]);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t at = row * shape_.output.channel, position = column + i;
    for (uint32_t d = kMaxSpatial; d-- > 0; position /= shape_.windows[d].output) {
      at += position % shape_.windows[d].output * shape_.output.spatial[d];
    }
    output[at] = sums[i];
  }
}

// Wraps.
void DotSums::Correct(uint64_t row, uint64_t column, uint64_t count, uint32_t* sums) const {
  const Corrections& c = corrections_;
  const auto number = [](const int32_t* numbers, uint64_t at) {
    return numbers == nullptr ? 0 : static_cast<uint32_t>(numbers[at]);
  };
  const uint32_t x = number(c.row_zeros, row);
  if (c.column_zeros != nullptr) {
    const uint32_t rows = number(c.row_sums, row) - static_cast<uint32_t>(c.steps) * x;
    for (uint64_t i = 0; i < count; ++i) sums[i] -= static_cast<uint32_t>(c.column_zeros[column + i]) * rows;
  }
  if (x == 0) return;
  for (uint64_t i = 0; i < count; ++i) sums[i] -= x * static_cast<uint32_t>(c.column_sums[column + i]);
}

bool SumsAreRows(const ConvolutionShape& s) {
  uint64_t expected = 1;
  bool contiguous = true;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= s.windows[d].output) {
    contiguous = contiguous && (s.windows[d].output == 1 || s.output.spatial[d] == expected);
  }
  return contiguous;
}

bool LoadZeroPoints(const std::optional<ZeroPoints>& zero, DataType type, bool rows, uint64_t groups,
                    uint64_t elements, const KernelArguments& arguments, int32_t* zeros) {
  const uint64_t count = groups * elements;
  if (zero) {
    const Block block = {groups, elements, zero->group, zero->stride, 0};
    FindLoad(type, Class::kI32)(arguments.inputs[zero->input].data, block, zeros);
  } else {
    std::fill_n(zeros, count, 0);
  }
  const int32_t shift = ShiftInPanels(type, rows);
  for (uint64_t i = 0; i < count && shift != 0; ++i) zeros[i] += shift;
  return std::any_of(zeros, zeros + count, [](int32_t number) { return number != 0; });
}

}  // namespace anydml
