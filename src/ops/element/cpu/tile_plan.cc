#include "ops/element/cpu/tile_plan.h"

#include <algorithm>

namespace anydml {
namespace {

constexpr uint64_t kCacheLine = 64;

std::vector<TileLoop> LoopsOf(const ElementProblem& problem) {
  std::vector<TileLoop> loops;
  for (uint32_t d = 0; d < problem.rank; ++d) {
    if (problem.sizes[d] == 1) continue;
    TileLoop& loop = loops.emplace_back();
    loop.size = problem.sizes[d];
    for (const ElementOperand& operand : problem.inputs) loop.strides.push_back(operand.strides[d]);
    for (const ElementOperand& operand : problem.outputs) loop.strides.push_back(operand.strides[d]);
  }
  return loops;
}

// A loop that continues where the one inside left off, for every operand, becomes one with it.
void Coalesce(std::vector<TileLoop>* loops) {
  size_t kept = 0;
  for (size_t i = 1; i < loops->size(); ++i) {
    TileLoop& outer = (*loops)[kept];
    TileLoop& inner = (*loops)[i];
    bool continues = true;
    for (size_t o = 0; o < inner.strides.size(); ++o) {
      continues = continues && outer.strides[o] == inner.size * inner.strides[o];
    }
    if (continues) {
      outer.size *= inner.size;
      outer.strides = std::move(inner.strides);
    } else if (++kept != i) {
      (*loops)[kept] = std::move(inner);
    }
  }
  if (!loops->empty()) loops->resize(kept + 1);
}

// The loop along which some input's elements are neighbours while the output's are not; the last loop when
// there is none.
size_t FindAcross(const std::vector<TileLoop>& loops, size_t inputs) {
  const TileLoop& last = loops.back();
  for (size_t o = 0; o < inputs; ++o) {
    if (last.strides[o] <= 1) continue;
    for (size_t d = 0; d + 1 < loops.size(); ++d) {
      const uint64_t stride = loops[d].strides[o];
      if (stride > 0 && stride < last.strides[o] && loops[d].size > 3) return d;
    }
  }
  return loops.size() - 1;
}

uint64_t NarrowestInput(const ElementProblem& problem) {
  uint64_t bytes = 8;
  for (const ElementOperand& operand : problem.inputs) {
    if (operand.type != DataType::kUnknown) bytes = std::min<uint64_t>(bytes, BitSize(operand.type) / 8);
  }
  return std::max<uint64_t>(bytes, 1);
}

}  // namespace

TilePlan::TilePlan(const ElementProblem& problem, uint32_t tile_elements) : loops(LoopsOf(problem)) {
  const size_t inputs = problem.inputs.size();
  std::stable_sort(loops.begin(), loops.end(), [&](const TileLoop& a, const TileLoop& b) {
    return a.strides[inputs] > b.strides[inputs];
  });
  Coalesce(&loops);
  if (loops.empty()) return;
  uint64_t rest = tile_elements;
  const size_t across = FindAcross(loops, inputs);
  if (across + 1 < loops.size()) {
    std::rotate(loops.begin() + static_cast<ptrdiff_t>(across),
                loops.begin() + static_cast<ptrdiff_t>(across) + 1, loops.end() - 1);
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
