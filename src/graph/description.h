// A graph as a client describes it, copied from the C structs except for the constants' data, and not yet
// checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/operator.h"
#include "schema/operator_desc.h"

namespace anydml {

struct GraphNodeDescription {
  std::string name;                     // may be empty
  const Operator* op = nullptr;         // null: a constant
  OperatorDesc desc;                    // of an operator, checked
  std::span<const std::byte> constant;  // of a constant, not empty: the client's memory and size
};

// The end of an edge; graph inputs and outputs have no `port`.
struct GraphPort {
  uint32_t index = 0;  // index of the node, the graph input or the graph output
  uint32_t port = 0;   // of the node's inputs or outputs, in binding order
};

struct GraphEdgeDescription {
  std::string name;  // may be empty
  GraphPort from;
  GraphPort to;
};

struct GraphDescription {
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  std::vector<GraphNodeDescription> nodes;
  std::vector<GraphEdgeDescription> input_edges;
  std::vector<GraphEdgeDescription> intermediate_edges;
  std::vector<GraphEdgeDescription> output_edges;
};

}  // namespace anydml
