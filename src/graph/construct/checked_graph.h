// A graph's description whose edges have been checked; build.cc makes a graph of it.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace anydml {

// The source of a node's input or of a graph output.
struct GraphFeed {
  enum class Kind { kNobody, kInputEdge, kIntermediateEdge, kOutputEdge };
  Kind kind = Kind::kNobody;
  uint32_t edge = 0;
};

struct CheckedGraph {
  struct Node {
    std::vector<NamedTensor> inputs;  // of the description's operator
    std::vector<NamedTensor> outputs;
    std::vector<GraphFeed> feeds;  // one per input
  };

  uint32_t node_count() const { return static_cast<uint32_t>(description.nodes.size()); }
  bool IsConstant(uint32_t node) const { return description.nodes[node].op == nullptr; }
  std::string NodeName(uint32_t node) const;  // node 3 "conv1" (CONVOLUTION)

  GraphDescription description;
  std::vector<Node> nodes;      // one per node of the description
  std::vector<uint32_t> order;  // node indices in an order in which they can run; operators only
  std::vector<GraphInput> inputs;
  std::vector<GraphOutput> outputs;
};

// Checks everything that a node alone cannot check. `out` has the description.
Status CheckGraph(CheckedGraph* out);

// Warnings for the debug layer: constants that nothing reads, nodes of the same name.
std::vector<std::string> FindWarnings(const CheckedGraph& graph);

// A part of CheckGraph (order.cc): finds cycles, and nodes whose results are not used.
Status OrderNodes(CheckedGraph* graph);

}  // namespace anydml
