// A gather as loops, the same for all operators and backends.
#pragma once

#include <cstdint>

#include "ops/common/loop_nest.h"
#include "ops/gather/problem.h"

namespace anydml {

struct GatherLoops {
  // Over the output's elements in row-major order; strides in elements. If the stride of the indices is 0,
  // neighbours have the same tuple.
  enum Operand { kOutput, kInput, kIndices };
  LoopNest<3> elements;
  // Over the tuples in row-major order: all dimensions except the components'.
  LoopNest<1> tuples;

  struct Component {
    uint64_t size = 1;          // of the addressed dimension
    uint64_t wrap = 0;          // added to negative indices: the size, or 0 if these are out of range
    uint64_t input_stride = 0;  // of the addressed dimension
    uint64_t index_offset = 0;  // from component 0, in indices
  };
  uint32_t tuple_size = 1;
  Component tuple[kMaxDimensions];
};

GatherLoops MakeGatherLoops(const GatherProblem& problem);

// The coordinate in the indices of tuple `number` in row-major order.
Dimensions TupleCoordinate(const GatherProblem& problem, uint64_t number);

// The index to read at. `value` is an element of the index tensor, extended to 64 bits. (constexpr, so that
// nvcc compiles it for the device, too.)
constexpr uint64_t ResolveIndex(const GatherLoops::Component& component, int64_t value, bool is_signed,
                                bool* in_range) {
  const bool negative = is_signed && value < 0;
  // Modulo 2^64, negative indices that do not wrap into range end up far above any size.
  const uint64_t index = static_cast<uint64_t>(value) + (negative ? component.wrap : 0);
  if (index < component.size) return index;
  *in_range = false;
  return negative ? 0 : component.size - 1;
}

}  // namespace anydml
