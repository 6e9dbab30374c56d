// What is done to a graph before it is lowered. Every pass keeps what the graph computes: element-wise
// results to the byte, others within what their operators promise.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace anydml {

struct GraphPass {
  const char* name;  // what ANYDML_GRAPH_WITHOUT takes: "fold", "fuse", ...
  Status (*run)(const LowerContext& context, Graph* graph);
};

// What each does is said in its file.
Status FuseActivations(const LowerContext& context, Graph* graph);
Status FuseElements(const LowerContext& context, Graph* graph);

// In the order in which they run.
std::span<const GraphPass> GraphPasses();

// Runs all passes but those that the environment variable ANYDML_GRAPH_WITHOUT names (separated by commas;
// "all": none runs).
Status RunPasses(const LowerContext& context, Graph* graph);

// Who writes and who reads a value, as indices of nodes. Not kept up to date when the graph changes.
struct GraphUse {
  std::vector<uint32_t> writers;  // none: an input or a constant; several: each writes a part
  std::vector<uint32_t> readers;  // in order; a node that reads it twice is there once
};
std::vector<GraphUse> FindUses(const Graph& graph);

// Removes the nodes without outputs: a pass leaves those behind that it made superfluous.
void RemoveEmptyNodes(Graph* graph);

}  // namespace anydml
