// Rows one behind the other, each of them a row of the input with some elements before and behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/move/cpu/line_writer.h"

namespace anydml {

struct FramedRow {
  uint64_t inner = 0;               // bytes of the input
  uint64_t before = 0, behind = 0;  // bytes beside them
  // What these are: an element, as often as a word has room for; or where `is_constant` does not hold
  // elements of `width` bytes of the row, at these bytes of it.
  bool is_constant = true;
  uint64_t fill = 0;
  uint32_t width = 0;
  std::vector<uint64_t> before_from, behind_from;
};

// The row for each of `rows` of the input; null: constants only.
void AppendRows(const FramedRow& row, std::span<const std::byte* const> rows, ByteWriter* writer);
void AppendRows(const FramedRow& row, std::span<const std::byte* const> rows, LineWriter* writer);

}  // namespace anydml
