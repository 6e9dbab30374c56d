// Which nodes of a graph run here, and in which groups.
#pragma once

#include <string>
#include <vector>

#include "ort/read_graph.h"

namespace anydml::ort {

// For each node of the graph: "" if the importer takes it, or why not. A node whose sizes are not known yet
// is taken if it can be lowered for some sizes: what is refused is mostly a type, a number of dimensions or
// an attribute. Groups that fail for the sizes that they get are run by onnxruntime (CpuSession).
std::vector<std::string> RefusedNodes(const Api& api, const Graph& graph, uint32_t feature_level);

// Groups of nodes (by index) that can run as one: no other node is on a path between two of them. Omits
// groups that are not worthwhile: those that only move or count, and arithmetic on sizes that nothing in the
// group needs.
std::vector<std::vector<size_t>> GroupNodes(const Graph& graph, const std::vector<std::string>& refused);

}  // namespace anydml::ort
