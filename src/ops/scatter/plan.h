// Both operators in one canonical form: for every position a tuple is read, and
// either one slice is written where it points or nothing.
#pragma once

#include <array>

#include "ops/common/loop_nest.h"
#include "ops/scatter/problem.h"

namespace anydml {

struct ScatterPlan {
  // Row-major and not to be reordered: the order decides between duplicates.
  enum PositionOperand { kIndices, kUpdates, kOutput };
  LoopNest<3> positions;

  struct Component {
    uint64_t size;           // of the dimension it addresses
    uint64_t output_stride;  // of that dimension
    uint64_t index_offset;   // from component 0, in elements of the indices
  };
  uint32_t tuple_size = 1;
  std::array<Component, kMaxDimensions> tuple{};

  // The elements of a slice are distinct: their order is free.
  enum SliceOperand { kSliceUpdates, kSliceOutput };
  LoopNest<2> slice;
};

ScatterPlan MakeScatterPlan(const ScatterProblem& problem);

// The coordinate in the indices of the `number`-th position in row-major order.
Dimensions PositionCoordinate(const ScatterProblem& problem, uint64_t number);

}  // namespace anydml
