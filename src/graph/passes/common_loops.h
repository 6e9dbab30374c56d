// Rewrites the loops of two problems as common loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/element/problem.h"

namespace anydml {

// One loop of a problem as a part of common loop `loop`: one iteration of it is `factor` iterations there.
struct LoopPart {
  uint32_t loop;
  uint64_t factor;
};
using LoopParts = std::vector<LoopPart>;

void SeeFrom(const LoopParts& parts, std::span<const uint64_t> sizes, ElementProblem* problem);

// Removes loops of one iteration.
void Simplify(ElementProblem* problem);

// Common loops of two problems that visit the same elements, each once.
struct CommonLoops {
  std::vector<uint64_t> sizes;
  LoopParts first;
  LoopParts second;
};

// Walks the loops of a problem from the smallest stride of an operand outward.
struct LoopWalk {
  LoopWalk(const ElementProblem& problem, const ElementOperand& operand)
      : problem(problem), operand(operand) {
    for (uint32_t d = 0; d < problem.rank; ++d) order.push_back(d);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return operand.strides[a] < operand.strides[b]; });
  }
  bool at_end() const { return at == order.size(); }
  uint64_t stride() const { return operand.strides[order[at]] * factor; }
  uint64_t left() const { return problem.sizes[order[at]] / factor; }
  LoopPart Take(uint64_t iterations) {
    const LoopPart part = {order[at], factor};
    factor *= iterations;
    if (left() == 1) {
      ++at;
      factor = 1;
    }
    return part;
  }

  const ElementProblem& problem;
  const ElementOperand& operand;
  std::vector<uint32_t> order;
  size_t at = 0;
  uint64_t factor = 1;  // iterations of the current loop that have been taken
};

// False if there are none.
bool FindCommonLoops(LoopWalk first, LoopWalk second, CommonLoops* common);

}  // namespace anydml
