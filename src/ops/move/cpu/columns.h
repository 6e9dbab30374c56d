// Many copies that are the columns of one matrix, as in SPLIT and JOIN along the last dimension. They are
// done in tiles, because copying one column after the other would go through the matrix's memory once per
// column.
#pragma once

#include <cstdint>
#include <span>

#include "ops/common/loop_nest.h"
#include "ops/move/affine_map.h"
#include "ops/move/problem.h"

namespace anydml {

// A copy and its place among the buffers of a run.
struct PlacedMap {
  MoveCopy::Source source;
  uint32_t from_buffer, to_buffer;
  FlatMap map;
};

class ColumnCopies {
 public:
  // How many of `copies`, from the first on, are such columns; 0 if there are too few for tiles.
  static size_t Count(std::span<const PlacedMap> copies);

  // For all of these.
  ColumnCopies(std::span<const PlacedMap> copies, uint32_t element_bytes);

  // Runs share `part` of `parts`.
  void Run(const KernelArguments& arguments, std::span<const PlacedMap> copies, uint32_t part,
           uint32_t parts) const;

 private:
  template <typename T>
  void RunItem(const KernelArguments& arguments, std::span<const PlacedMap> copies, uint64_t item) const;

  uint32_t element_bytes_;
  bool splits_;  // the matrix is the source
  LoopNest<2> outer_;
  LoopNest<2>::Loop rows_;  // contiguous in a column
  uint64_t row_items_;
};

}  // namespace anydml
