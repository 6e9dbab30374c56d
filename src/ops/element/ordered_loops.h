// The loops of an element problem in the memory order of its first output. A Loop has a size and a vector of
// strides, one per operand: inputs, then outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/element/problem.h"

namespace anydml {

// The minimal Loop.
struct OrderedLoop {
  uint64_t size = 1;
  std::vector<uint64_t> strides;
};

// Merges a loop with the one inside it if it continues that one for every operand.
template <typename Loop>
void Coalesce(std::vector<Loop>* loops) {
  size_t kept = 0;
  for (size_t i = 1; i < loops->size(); ++i) {
    Loop& outer = (*loops)[kept];
    Loop& inner = (*loops)[i];
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

// Outermost first, without loops of one iteration.
template <typename Loop>
std::vector<Loop> OrderedLoops(const ElementProblem& problem) {
  std::vector<Loop> loops;
  for (uint32_t d = 0; d < problem.rank; ++d) {
    if (problem.sizes[d] == 1) continue;
    Loop& loop = loops.emplace_back();
    loop.size = problem.sizes[d];
    for (const ElementOperand& operand : problem.inputs) loop.strides.push_back(operand.strides[d]);
    for (const ElementOperand& operand : problem.outputs) loop.strides.push_back(operand.strides[d]);
  }
  const size_t output = problem.inputs.size();
  std::stable_sort(loops.begin(), loops.end(),
                   [output](const Loop& a, const Loop& b) { return a.strides[output] > b.strides[output]; });
  Coalesce(&loops);
  return loops;
}

// The loop of at least `size` iterations along which some input has a smaller stride than along the last
// loop; the last loop if there is none. There must be at least one loop.
template <typename Loop>
size_t FindAcross(const std::vector<Loop>& loops, size_t inputs, uint64_t size) {
  const Loop& last = loops.back();
  for (size_t o = 0; o < inputs; ++o) {
    if (last.strides[o] <= 1) continue;
    for (size_t d = 0; d + 1 < loops.size(); ++d) {
      const uint64_t stride = loops[d].strides[o];
      if (stride > 0 && stride < last.strides[o] && loops[d].size >= size) return d;
    }
  }
  return loops.size() - 1;
}

// Moves loop `across` next to the last one.
template <typename Loop>
void MoveBesideLast(std::vector<Loop>* loops, size_t across) {
  const auto at = loops->begin() + static_cast<ptrdiff_t>(across);
  std::rotate(at, at + 1, loops->end() - 1);
}

}  // namespace anydml
