// Joins several element programs into one.
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

// One program that does for every element what `members`, which have the same loops, do one after the other,
// with the same results to the byte. `is_needed` says which values must be stored; those that only members
// read are not. Empty if a member reads an element from another place than it was written to, or if there are
// not enough registers.
std::optional<ElementWork> JoinElements(std::span<const ElementWork* const> members,
                                        const std::function<bool(uint32_t value)>& is_needed);

}  // namespace anydml
