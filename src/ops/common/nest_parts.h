// Cuts a loop nest into parts that may run at the same time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/common/loop_nest.h"
#include "ops/common/parallel.h"

namespace anydml {

// A part of a nest's iterations, ready to run, with the innermost loop separate.
template <size_t kOperands>
struct NestPart {
  LoopNest<kOperands> outer;
  typename LoopNest<kOperands>::Loop inner;
  typename LoopNest<kOperands>::Offsets start{};
};

// The loop to cut into `parts`: the outermost one that divides nearly evenly, so that a part's memory is as
// contiguous as possible; otherwise the longest.
template <size_t kOperands>
uint32_t LoopToCut(const LoopNest<kOperands>& nest, uint32_t parts) {
  uint32_t longest = 0;
  for (uint32_t d = 0; d < nest.rank; ++d) {
    if (nest.loops[d].size / 8 >= parts) return d;
    if (nest.loops[d].size > nest.loops[longest].size) longest = d;
  }
  return longest;
}

// `nest` cut at `loop` into `parts`, or into fewer if there are fewer iterations.
template <size_t kOperands>
std::vector<NestPart<kOperands>> CutNest(const LoopNest<kOperands>& nest, uint32_t loop, uint32_t parts) {
  const auto whole = nest.loops[loop];  // a loop of one iteration if the rank is 0
  parts = static_cast<uint32_t>(std::min<uint64_t>(parts, whole.size));
  std::vector<NestPart<kOperands>> result(parts);
  for (uint32_t p = 0; p < parts; ++p) {
    NestPart<kOperands>& part = result[p];
    const uint64_t begin = PartBegin(whole.size, p, parts);
    part.outer = nest;
    part.outer.loops[loop].size = PartBegin(whole.size, p + 1, parts) - begin;
    for (size_t o = 0; o < kOperands; ++o) part.start[o] = begin * whole.strides[o];
    part.inner = TakeInnermost(&part.outer);
  }
  return result;
}

// The number of parts for work on `bytes` of memory with `threads`. Several parts per thread even out unequal
// speeds, if all threads get the same number; parts that are too small cost more to distribute than they
// save.
inline uint32_t PartsForBytes(uint64_t bytes, uint32_t threads) {
  constexpr uint64_t kPartBytes = uint64_t{256} << 10;
  if (threads <= 1) return 1;
  const uint64_t parts = std::clamp<uint64_t>(bytes / kPartBytes, 1, uint64_t{4} * threads);
  return static_cast<uint32_t>(parts <= threads ? parts : (parts + threads - 1) / threads * threads);
}

}  // namespace anydml
