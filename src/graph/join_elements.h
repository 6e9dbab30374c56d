// One element program of several.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace anydml {

struct ElementWork {
  ElementProblem problem;
  std::vector<GraphOperand> inputs;  // in binding order
  std::vector<GraphOperand> outputs;
};

// Does for every element what `members`, which have the same loops, do one after the other, with the same
// results to the byte. What only they read is not stored: `is_needed` says which values must be. Nothing
// where an element of one is not where another reads it, or where there are not enough registers.
std::optional<ElementWork> JoinElements(std::span<const ElementWork* const> members,
                                        const std::function<bool(uint32_t value)>& is_needed);

}  // namespace anydml
