// Sources and targets of elements as loops: SLICE, SPLIT, JOIN, TILE and the like consist of these. Separate
// from kernels, so that a graph can fold them into the strides of neighbouring nodes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/common/loop_nest.h"

namespace anydml {

// On both sides element i of a loop is i strides from element 0. Strides are in elements, of either sign.
struct AffineLoop {
  uint64_t size = 1;
  int64_t from = 0;
  int64_t to = 0;
};

// Twice the dimensions of a tensor: TILE splits each of them in two.
inline constexpr uint32_t kMaxMapLoops = 2 * kMaxDimensions;

struct AffineMap {
  int64_t from = 0;  // place of the first element
  int64_t to = 0;
  uint32_t rank = 0;
  std::array<AffineLoop, kMaxMapLoops> loops{};

  void Append(uint64_t size, int64_t from_stride, int64_t to_stride) {
    if (size > 1) loops[rank++] = {size, from_stride, to_stride};
  }
};

// Loops for kernels: in ascending order of the target's addresses, coalesced. Negative strides of the source
// are stored as two's complement.
struct FlatMap {
  enum Operand { kFrom, kTo };
  int64_t from = 0;
  int64_t to = 0;
  LoopNest<2> nest;
};

// Nearly always a single one. A map with more loops than a nest can have, even after coalescing, becomes
// several.
std::vector<FlatMap> Flatten(const AffineMap& map);

}  // namespace anydml
