// Both operators in one canonical form: for every position a tuple is read, and either one slice is written
// to the place that it gives, or nothing.
#pragma once

#include <array>
#include <vector>

#include "ops/common/nest_parts.h"
#include "ops/scatter/problem.h"

namespace anydml {

struct ScatterLoops {
  // Row-major and not to be reordered, because the order decides between duplicates.
  enum PositionOperand { kIndices, kUpdates, kOutput };
  LoopNest<3> positions;

  struct Component {
    uint64_t size;           // of the addressed dimension
    uint64_t wrap;           // added to negative indices: the size, or 0 if these are out of range
    uint64_t output_stride;  // of the addressed dimension
    uint64_t index_offset;   // from component 0, in elements of the indices
  };
  uint32_t tuple_size = 1;
  std::array<Component, kMaxDimensions> tuple{};
  // One or two contiguous indices that vectors of 32-bit numbers can process: sizes below 2^31, so that a
  // negative index never appears to be in range, and offsets below 2^32.
  bool packed = false;

  // The elements of a slice are distinct, so their order is free.
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
  uint32_t output_dimension;  // the dimension that it also walks; kNoDimension: the tuple determines
                              // everything
};
std::vector<PositionLoop> PositionLoops(const ScatterProblem& problem);

// The number of trailing output dimensions that make up a slice.
inline uint32_t SliceDimensions(const ScatterProblem& problem) {
  return problem.kind == ScatterProblem::Kind::kNd ? problem.input_dimensions - problem.tuple_size() : 0;
}

// Threads own disjoint sets of targets, each a range of hashes. Hashes, not ranges of the output, so that
// updates of one region are spread over all owners. The hashed key is the same for equal targets: the index
// if tuples have one component, otherwise the offset.
struct ScatterOwner {
  uint32_t key_shift = 0;  // keeps neighbours in the output together
  uint32_t first = 0;
  uint32_t last = ~uint32_t{0};  // minus first; all ones: this one owns everything

  // Spreads consecutive keys as far apart as possible (golden ratio).
  static constexpr uint32_t kMultiplier = 0x9E3779B9u;

  bool OwnsAll() const { return last == ~uint32_t{0}; }
  bool Owns(uint64_t key) const {
    return static_cast<uint32_t>(key >> key_shift) * kMultiplier - first <= last;
  }
};

// The work of one thread: its slices (or its piece of each) among the positions that it visits. No element is
// written by two parts, so the order of updates is preserved.
struct ScatterPart {
  NestPart<3> positions;
  NestPart<2> slice;
  ScatterOwner owner;
};

// For up to `threads`; a single part if the problem is too small to share.
std::vector<ScatterPart> MakeScatterParts(const ScatterProblem& problem, const ScatterLoops& loops,
                                          uint32_t threads);

// The coordinate in the indices of position `number` in row-major order.
Dimensions PositionCoordinate(const ScatterProblem& problem, uint64_t number);

}  // namespace anydml
