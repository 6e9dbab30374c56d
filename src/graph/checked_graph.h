// A graph's description whose edges were found to be right: build.cc makes a graph of it.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace anydml {

// Who feeds an input of a node or a graph output.
struct GraphFeed {
  enum class Kind { kNobody, kInputEdge, kIntermediateEdge, kOutputEdge };
  Kind kind = Kind::kNobody;
  uint32_t edge = 0;
};

struct CheckedGraph {
  struct Node {
    std::vector<NamedTensor> inputs;  // of the description's node
    std::vector<NamedTensor> outputs;
    std::vector<GraphFeed> feeds;  // one per input
  };

  uint32_t node_count() const { return static_cast<uint32_t>(description.nodes.size()); }
  bool IsConstant(uint32_t node) const { return description.nodes[node].op == nullptr; }
  std::string NodeName(uint32_t node) const;  // node 3 "conv1" (CONVOLUTION)

  GraphDescription description;
  std::vector<Node> nodes;      // one per node of the description
  std::vector<uint32_t> order;  // in which they can run; operators only
  std::vector<GraphInput> inputs;
  std::vector<GraphOutput> outputs;
};

// Checks everything that the nodes do not know alone. `out` has the description.
Status CheckGraph(CheckedGraph* out);

// What a debug layer says of it: constants that nobody reads, nodes of the same name.
std::vector<std::string> FindWarnings(const CheckedGraph& graph);

// A part of CheckGraph (order.cc): cycles, and nodes that lead nowhere.
Status OrderNodes(CheckedGraph* graph);

}  // namespace anydml
