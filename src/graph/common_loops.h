// Loops of two problems as common ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/element/problem.h"

namespace anydml {

// Loops of a problem in terms of others: loop d is part of loop `loop`, whose iterations it takes `factor` at
// a time.
struct LoopPart {
  uint32_t loop;
  uint64_t factor;
};
using LoopParts = std::vector<LoopPart>;

void SeeFrom(const LoopParts& parts, std::span<const uint64_t> sizes, ElementProblem* problem);

// Without loops of one iteration.
void Simplify(ElementProblem* problem);

// Common loops of two problems that go through the same elements, each once.
struct CommonLoops {
  std::vector<uint64_t> sizes;
  LoopParts first;
  LoopParts second;
};

// The loops of a problem from the one of an operand's neighbours outward.
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
  uint64_t factor = 1;  // iterations of the loop that are taken already
};

// False where there are none.
bool FindCommonLoops(LoopWalk first, LoopWalk second, CommonLoops* common);

}  // namespace anydml
