#include "ops/move/affine_map.h"

#include <algorithm>

namespace anydml {
namespace {

using Loops = std::vector<AffineLoop>;

// Merges neighbouring loops, in the order of the target, that continue each other.
Loops Coalesced(const AffineMap& map) {
  Loops loops(map.loops.begin(), map.loops.begin() + map.rank);
  std::stable_sort(loops.begin(), loops.end(),
                   [](const AffineLoop& a, const AffineLoop& b) { return a.to > b.to; });
  Loops result;
  for (const AffineLoop& loop : loops) {
    const auto size = static_cast<int64_t>(loop.size);
    if (!result.empty() && result.back().from == size * loop.from && result.back().to == size * loop.to) {
      result.back() = {result.back().size * loop.size, loop.from, loop.to};
    } else {
      result.push_back(loop);
    }
  }
  return result;
}

void Expand(const Loops& loops, const AffineMap& at, std::vector<FlatMap>* out) {
  if (loops.size() <= kMaxDimensions) {
    FlatMap flat = {at.from, at.to, {}};
    for (const AffineLoop& loop : loops) {
      flat.nest.Append(loop.size, {static_cast<uint64_t>(loop.from), static_cast<uint64_t>(loop.to)});
    }
    out->push_back(flat);
    return;
  }
  const auto shortest = std::min_element(loops.begin(), loops.end(),
                                         [](const auto& a, const auto& b) { return a.size < b.size; });
  Loops others = loops;
  others.erase(others.begin() + (shortest - loops.begin()));
  AffineMap step = at;
  for (uint64_t i = 0; i < shortest->size; ++i) {
    Expand(others, step, out);
    step.from += shortest->from;
    step.to += shortest->to;
  }
}

}  // namespace

std::vector<FlatMap> Flatten(const AffineMap& map) {
  AffineMap rising = map;
  for (uint32_t d = 0; d < map.rank; ++d) {
    AffineLoop& loop = rising.loops[d];
    if (loop.to >= 0) continue;
    const auto steps = static_cast<int64_t>(loop.size - 1);
    rising.from += steps * loop.from;
    rising.to += steps * loop.to;
    loop.from = -loop.from;
    loop.to = -loop.to;
  }
  std::vector<FlatMap> flat;
  Expand(Coalesced(rising), rising, &flat);
  return flat;
}

}  // namespace anydml
