// Consecutive rows, each of which is a row of the input with elements before and after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ops/move/cpu/line_writer.h"

namespace anydml {

struct FramedRow {
  uint32_t width = 1;               // bytes per element
  uint64_t inner = 0;               // elements of the input
  uint64_t before = 0, behind = 0;  // elements on both sides
  // These are `fill`, an element repeated to fill a word; or elements of the input's row, at these byte
  // offsets.
  bool is_constant = true;
  uint64_t fill = 0;
  std::span<const uint64_t> before_from = {}, behind_from = {};
};

#include "ops/move/cpu/framed_row-inl.h"

// Writes one per entry of `rows`, in whole cache lines, with the widest vectors available.
void AppendRows(const FramedRow& row, std::span<const std::byte* const> rows, LineWriter* writer);

}  // namespace anydml
