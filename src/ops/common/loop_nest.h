// Loops over up to kMaxDimensions dimensions with one stride per operand: coalesced while they are built,
// iterated without division.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "schema/tensor_desc.h"

namespace anydml {

template <size_t kOperands>
struct LoopNest {
  using Offsets = std::array<uint64_t, kOperands>;  // in elements, one per operand

  struct Loop {
    uint64_t size = 1;
    Offsets strides{};
  };

  uint32_t rank = 0;
  std::array<Loop, kMaxDimensions> loops{};  // outermost first; sizes are at least 2

  // Adds an innermost loop. A loop of one iteration is dropped, and a loop that continues the enclosing one
  // (for every operand) is merged with it; the elements are still visited in row-major order.
  void Append(uint64_t size, const Offsets& strides) {
    if (size == 1) return;
    if (rank > 0 && Continues(loops[rank - 1].strides, size, strides)) {
      loops[rank - 1].size *= size;
      loops[rank - 1].strides = strides;
      return;
    }
    loops[rank++] = {size, strides};
  }

 private:
  static bool Continues(const Offsets& outer, uint64_t size, const Offsets& inner) {
    for (size_t i = 0; i < kOperands; ++i) {
      if (outer[i] != size * inner[i]) return false;
    }
    return true;
  }
};

// The same iterations with strides of operand `by` ascending inward to outward, so that this operand is
// visited in the order of its addresses. Only for loops whose order does not matter.
template <size_t kOperands>
LoopNest<kOperands> SortedByStride(const LoopNest<kOperands>& nest, size_t by) {
  auto loops = nest.loops;
  std::stable_sort(loops.begin(), loops.begin() + nest.rank,
                   [by](const auto& a, const auto& b) { return a.strides[by] > b.strides[by]; });
  LoopNest<kOperands> sorted;
  for (uint32_t i = 0; i < nest.rank; ++i) sorted.Append(loops[i].size, loops[i].strides);
  return sorted;
}

// Removes the innermost loop of `nest` and returns it; a loop of one iteration if there is none.
template <size_t kOperands>
typename LoopNest<kOperands>::Loop TakeInnermost(LoopNest<kOperands>* nest) {
  return nest->rank == 0 ? typename LoopNest<kOperands>::Loop{} : nest->loops[--nest->rank];
}

template <size_t kOperands>
uint64_t Iterations(const LoopNest<kOperands>& nest) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < nest.rank; ++d) count *= nest.loops[d].size;
  return count;
}

// The offsets of iteration `number` in row-major order. (constexpr, so that nvcc compiles it for the device,
// too.)
template <size_t kOperands>
constexpr typename LoopNest<kOperands>::Offsets OffsetsOf(const LoopNest<kOperands>& nest, uint64_t number) {
  typename LoopNest<kOperands>::Offsets offsets{};
  for (uint32_t d = nest.rank; d-- > 0;) {
    const auto& loop = nest.loops[d];
    const uint64_t at = d == 0 ? number : number % loop.size;
    if (d != 0) number /= loop.size;
    for (size_t o = 0; o < kOperands; ++o) offsets[o] += at * loop.strides[o];
  }
  return offsets;
}

// Calls body(offsets) for every iteration in row-major order; offsets begin at `start`.
template <size_t kOperands, typename Body>
void ForEach(const LoopNest<kOperands>& nest, typename LoopNest<kOperands>::Offsets start, Body&& body) {
  if (nest.rank == 0) {  // the common case: the only loop is contiguous
    body(start);
    return;
  }
  LoopNest<kOperands> outer = nest;
  const auto inner = TakeInnermost(&outer);
  std::array<uint64_t, kMaxDimensions> counters{};
  while (true) {
    auto offsets = start;
    for (uint64_t i = 0; i < inner.size; ++i) {
      body(offsets);
      for (size_t o = 0; o < kOperands; ++o) offsets[o] += inner.strides[o];
    }
    // Advance the outer loops like an odometer.
    uint32_t d = outer.rank;
    while (true) {
      if (d == 0) return;
      const auto& loop = outer.loops[--d];
      for (size_t o = 0; o < kOperands; ++o) start[o] += loop.strides[o];
      if (++counters[d] < loop.size) break;
      for (size_t o = 0; o < kOperands; ++o) start[o] -= loop.size * loop.strides[o];
      counters[d] = 0;
    }
  }
}

template <size_t kOperands, typename Body>
void ForEach(const LoopNest<kOperands>& nest, Body&& body) {
  ForEach(nest, typename LoopNest<kOperands>::Offsets{}, static_cast<Body&&>(body));
}

}  // namespace anydml
