#include "ops/element/cpu/tile_plan.h"

#include <algorithm>

#include "ops/element/ordered_loops.h"

namespace anydml {
namespace {

constexpr uint64_t kCacheLine = 64;
constexpr uint64_t kShortestAcross = 4;  // less is read well enough as it is

uint64_t NarrowestInput(const ElementProblem& problem) {
  uint64_t bytes = 8;
  for (const ElementOperand& operand : problem.inputs) {
    if (operand.type != DataType::kUnknown) bytes = std::min<uint64_t>(bytes, BitSize(operand.type) / 8);
  }
  return std::max<uint64_t>(bytes, 1);
}

}  // namespace

TilePlan::TilePlan(const ElementProblem& problem, uint32_t tile_elements)
    : loops(OrderedLoops<TileLoop>(problem)) {
  if (loops.empty()) return;
  uint64_t rest = tile_elements;
  const size_t across = FindAcross(loops, problem.inputs.size(), kShortestAcross);
  if (across + 1 < loops.size()) {
    MoveBesideLast(&loops, across);
    // As many neighbours of the input as lie in a cache line, so that each line is read once.
    TileLoop& beside = loops[loops.size() - 2];
    beside.chunk = std::min(beside.size, kCacheLine / NarrowestInput(problem));
    loops.back().chunk = std::min(loops.back().size, rest / beside.chunk);
  } else {
    for (size_t d = loops.size(); d-- > 0 && rest > 1;) {
      loops[d].chunk = std::min(loops[d].size, rest);
      rest /= loops[d].chunk;
    }
  }
  for (const TileLoop& loop : loops) tiles *= (loop.size + loop.chunk - 1) / loop.chunk;
}

Tile::Tile(const TilePlan& plan, uint64_t index) : plan(plan) {
  for (size_t d = plan.loops.size(); d-- > 0;) {
    const TileLoop& loop = plan.loops[d];
    const uint64_t chunks = (loop.size + loop.chunk - 1) / loop.chunk;
    begins[d] = index % chunks * loop.chunk;
    index /= chunks;
  }
  for (size_t d = 0; d < plan.loops.size(); ++d) {
    const TileLoop& loop = plan.loops[d];
    const uint64_t extent = std::min(loop.chunk, loop.size - begins[d]);
    if (extent > 1) loops[rank++] = {extent, &loop};
    elements *= extent;
  }
}

uint64_t Tile::Offset(uint32_t operand) const {
  uint64_t offset = 0;
  for (size_t d = 0; d < plan.loops.size(); ++d) offset += begins[d] * plan.loops[d].strides[operand];
  return offset;
}

}  // namespace anydml
