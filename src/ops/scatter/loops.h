// Both operators in one canonical form: for every position a tuple is read, and
// either one slice is written where it points or nothing.
#pragma once

#include <array>
#include <vector>

#include "ops/common/nest_parts.h"
#include "ops/scatter/problem.h"

namespace anydml {

struct ScatterLoops {
  // Row-major and not to be reordered: the order decides between duplicates.
  enum PositionOperand { kIndices, kUpdates, kOutput };
  LoopNest<3> positions;

  struct Component {
    uint64_t size;           // of the dimension it addresses
    uint64_t wrap;           // added to negative indices: the size, or 0 where they are out of range
    uint64_t output_stride;  // of that dimension
    uint64_t index_offset;   // from component 0, in elements of the indices
  };
  uint32_t tuple_size = 1;
  std::array<Component, kMaxDimensions> tuple{};
  // One or two indices side by side, that vectors of 32-bit numbers can deal with: sizes below 2^31,
  // so that a negative index is never taken for one in range, and offsets below 2^32.
  bool packed = false;

  // The elements of a slice are distinct: their order is free.
  enum SliceOperand { kSliceUpdates, kSliceOutput };
  LoopNest<2> slice;
};

ScatterLoops MakeScatterLoops(const ScatterProblem& problem);

// One of the loops over positions, outermost first in row-major order.
struct PositionLoop {
  static constexpr uint32_t kNoDimension = kMaxDimensions;

  uint32_t size;
  uint32_t indices_stride;
  uint32_t updates_stride;
  uint32_t output_dimension;  // that it walks through as well; kNoDimension: the tuple says it all
};
std::vector<PositionLoop> PositionLoops(const ScatterProblem& problem);

// The dimensions of the output that make up a slice: the last ones.
inline uint32_t SliceDimensions(const ScatterProblem& problem) {
  return problem.kind == ScatterProblem::Kind::kNd ? problem.input_dimensions - problem.tuple_size() : 0;
}

// Several threads own disjoint sets of targets, each a range of hashes. By hash and not by range
// of the output, so that updates of one region still spread over all owners. Hashed is a key
// that equal targets have in common: the index where tuples have one, otherwise the offset.
struct ScatterOwner {
  uint32_t key_shift = 0;  // neighbours in the output belong together
  uint32_t first = 0;
  uint32_t last = ~uint32_t{0};  // minus first; all: this one owns everything

  // Consecutive keys are as far apart as can be (golden ratio).
  static constexpr uint32_t kMultiplier = 0x9E3779B9u;

  bool OwnsAll() const { return last == ~uint32_t{0}; }
  bool Owns(uint64_t key) const {
    return static_cast<uint32_t>(key >> key_shift) * kMultiplier - first <= last;
  }
};

// What one thread does: its slices (or its piece of each) of the positions it walks over.
// No element is written by two parts, so that the order of updates stays what it was.
struct ScatterPart {
  NestPart<3> positions;
  NestPart<2> slice;
  ScatterOwner owner;
};

// For up to `threads`; one part when the problem is too small to be shared.
std::vector<ScatterPart> MakeScatterParts(const ScatterProblem& problem, const ScatterLoops& loops,
                                          uint32_t threads);

// The coordinate in the indices of the `number`-th position in row-major order.
Dimensions PositionCoordinate(const ScatterProblem& problem, uint64_t number);

}  // namespace anydml
