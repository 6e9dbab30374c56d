// Many copies that are the columns of one matrix, as those of SPLIT and JOIN along the last dimension are: by
// tiles, since one column after the other would go through the matrix's memory as often as it has columns.
#pragma once

#include <cstdint>
#include <span>

#include "ops/common/loop_nest.h"
#include "ops/move/affine_map.h"
#include "ops/move/problem.h"

namespace anydml {

// A copy with its place among the buffers of a run.
struct PlacedMap {
  MoveCopy::Source source;
  uint32_t from_buffer, to_buffer;
  FlatMap map;
};

class ColumnCopies {
 public:
  // How many of `copies`, from the first on, are such columns; 0 where they are too few for tiles.
  static size_t Count(std::span<const PlacedMap> copies);

  // Of all of these.
  ColumnCopies(std::span<const PlacedMap> copies, uint32_t element_bytes);

  // Share `part` of `parts`.
  void Run(const KernelArguments& arguments, std::span<const PlacedMap> copies, uint32_t part,
           uint32_t parts) const;

 private:
  template <typename T>
  void RunItem(const KernelArguments& arguments, std::span<const PlacedMap> copies, uint64_t item) const;

  uint32_t element_bytes_;
  bool splits_;  // the matrix is the source
  LoopNest<2> outer_;
  LoopNest<2>::Loop rows_;  // neighbours in a column
  uint64_t row_items_;
};

}  // namespace anydml
