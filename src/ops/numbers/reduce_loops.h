// The inner loops of reductions on CPUs.
#pragma once

#include <cstdint>

#include "ops/element/function.h"
#include "ops/reduce/problem.h"

namespace anydml {

// The accumulators of outputs from index `at` on. Values have up to 8 bytes each; seconds are positions or
// sums (see reduce/accumulate.h).
struct Accumulators {
  void* values;
  void* seconds;
  uint64_t at = 0;
};
inline constexpr uint64_t kAccumulatorValueBytes = 8, kAccumulatorSecondBytes = 4;

// Elements of a class: `rows` rows of `columns` contiguous ones, `row_stride` elements apart.
struct ReduceTile {
  const void* elements;
  uint64_t row_stride;
  uint32_t rows;
  uint32_t columns;
  uint32_t position;  // of row 0; the others follow
};
inline constexpr uint32_t kMaxReducedColumns = 4096;

struct ReduceLoops {
  void (*start)(const Accumulators& all, uint32_t count);
  // Adds `count` contiguous elements, the first at `position`, to one accumulator.
  void (*row)(const void* elements, uint64_t count, uint32_t position, const Accumulators& one);
  // Adds every row to the accumulators, one per column.
  void (*columns)(const ReduceTile& tile, const Accumulators& all);
  // Merges `from`, whose elements come later.
  void (*merge)(const Accumulators& into, const Accumulators& from, uint32_t count);
  // Results of n elements each, in the elements' class or as 32-bit positions.
  void (*finish)(const Accumulators& all, uint32_t count, ReduceFunction function, float n, void* results);
};

ReduceLoops FindReduceLoops(Accumulation kind, bool last, Class elements);

// The same, with `row` and `columns` for unconverted FLOAT16; false if there are none.
bool FindHalfReduceLoops(Accumulation kind, bool last, ReduceLoops* loops);

// Replaces `row` and `columns` by vectorised loops for FLOAT32 or, with `halves`, unconverted FLOAT16, if
// there are any. Returns whether there are.
bool UseVectors(Accumulation kind, bool last, bool halves, ReduceLoops* loops);

}  // namespace anydml
