// Rows one behind the other, each of them a row of the input with some elements before and behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ops/move/cpu/line_writer.h"

namespace anydml {

struct FramedRow {
  uint32_t width = 1;               // bytes of an element
  uint64_t inner = 0;               // elements of the input
  uint64_t before = 0, behind = 0;  // elements beside them
  // What these are: `fill`, an element as often as a word has room for; or elements of the input's row, at
  // these bytes of it.
  bool is_constant = true;
  uint64_t fill = 0;
  std::span<const uint64_t> before_from = {}, behind_from = {};
};

#include "ops/move/cpu/framed_row-inl.h"

// One for each of `rows`, in whole lines, by the widest vectors that there are.
void AppendRows(const FramedRow& row, std::span<const std::byte* const> rows, LineWriter* writer);

}  // namespace anydml
