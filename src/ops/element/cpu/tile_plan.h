// How a CPU walks the elements of a problem: in tiles that fit into the L1 cache with all registers, in the
// output's memory order; in two dimensions if an input is transposed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/element/problem.h"

namespace anydml {

struct TileLoop {
  uint64_t size = 1;
  uint64_t chunk = 1;             // a tile takes this many iterations, or the remaining ones
  std::vector<uint64_t> strides;  // per operand: inputs, then outputs
};

struct TilePlan {
  // Tiles have up to `elements`, or four times as many if they are only converted. Those across a transposed
  // input have up to `elements_across`, or twice as many with FLOAT16 in few registers.
  TilePlan(const ElementProblem& problem, uint64_t elements, uint64_t elements_across);

  // Whether two tiles may write the same byte, as two 4-bit elements do; then threads must not share the
  // work.
  bool SharesBytes(const ElementProblem& problem) const;

  std::vector<TileLoop> loops;  // outermost first
  uint64_t tiles = 1;
  // Some input is contiguous along the last loop but one: tiles are visited in blocks of both loops, so that
  // the pages of both sides stay in the TLB.
  bool across = false;
  uint64_t block_rows = 1;
  bool down = false;  // tiles of a block column by column
};

// For a WorkEstimate.
uint64_t WorkBytes(const ElementProblem& problem);

// The number of parts into which threads share a problem, and whether its output is large enough for
// non-temporal stores.
uint32_t PartsOf(const ElementProblem& problem, uint32_t threads);
bool StreamsOutput(const ElementProblem& problem);

// One of a plan's tiles. Elements are numbered in row-major order of the extents.
struct Tile {
  Tile(const TilePlan& plan, uint64_t index);

  struct Loop {
    uint64_t extent;
    const TileLoop* loop;
  };

  uint64_t Offset(uint32_t operand) const;
  bool IsContiguous(uint32_t operand) const;

  const TilePlan& plan;
  std::array<uint64_t, kMaxElementLoops> begins;  // per loop of the plan
  std::array<Loop, kMaxElementLoops> loops;       // loops of more than one iteration, outermost first
  uint32_t rank = 0;
  uint64_t elements = 1;
};

}  // namespace anydml
