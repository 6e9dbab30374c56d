// Where elements come from and go to, as loops: what SLICE, SPLIT, JOIN, TILE and their like are made of. A
// thing of its own, so that a graph can fold it into the strides of its neighbours.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/common/loop_nest.h"

namespace anydml {

// Element i of a loop is i strides on from element 0 on both sides. Strides are in elements, of either sign.
struct AffineLoop {
  uint64_t size = 1;
  int64_t from = 0;
  int64_t to = 0;
};

// Twice the dimensions of a tensor: TILE splits each of them in two.
inline constexpr uint32_t kMaxMapLoops = 2 * kMaxDimensions;

struct AffineMap {
  int64_t from = 0;  // where the first element is
  int64_t to = 0;
  uint32_t rank = 0;
  std::array<AffineLoop, kMaxMapLoops> loops{};

  void Append(uint64_t size, int64_t from_stride, int64_t to_stride) {
    if (size > 1) loops[rank++] = {size, from_stride, to_stride};
  }
};

// Loops as kernels want them: in the order of the target's addresses, which rise, and coalesced. Strides of
// the source that are negative are there as their two's complement.
struct FlatMap {
  enum Operand { kFrom, kTo };
  int64_t from = 0;
  int64_t to = 0;
  LoopNest<2> nest;
};

// Nearly always one. What has more loops than a nest, whatever is coalesced, becomes several.
std::vector<FlatMap> Flatten(const AffineMap& map);

}  // namespace anydml
