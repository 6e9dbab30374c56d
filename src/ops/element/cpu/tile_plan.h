// How a CPU goes through the elements of a problem: in tiles that fit into the first-level cache with all
// registers, along the output's order in memory; in two dimensions where an input lies across it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/element/problem.h"

namespace anydml {

struct TileLoop {
  uint64_t size = 1;
  uint64_t chunk = 1;             // of which a tile takes this many, or what is left
  std::vector<uint64_t> strides;  // per operand: inputs, then outputs
};

struct TilePlan {
  // Tiles have up to `elements`, or four times as many where they are converted only; those that lie across
  // an input have up to `elements_across`, or twice as many of FLOAT16 in few registers.
  TilePlan(const ElementProblem& problem, uint64_t elements, uint64_t elements_across);

  // Whether two tiles may write the same byte, which two threads must not: two 4-bit elements share one.
  bool SharesBytes(const ElementProblem& problem) const;

  std::vector<TileLoop> loops;  // outermost first
  uint64_t tiles = 1;
  // Neighbours of some input lie along the last loop but one: tiles are taken in blocks of both loops, so
  // that the pages of both sides stay known to the processor.
  bool across = false;
  uint64_t block_rows = 1;
  bool down = false;  // those of a block column by column
};

// For a WorkEstimate.
uint64_t WorkBytes(const ElementProblem& problem);

// In how many parts to share a problem between threads, and whether its output is worth going past the
// caches.
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
  std::array<Loop, kMaxElementLoops> loops;       // those of more than one iteration, outermost first
  uint32_t rank = 0;
  uint64_t elements = 1;
};

}  // namespace anydml
