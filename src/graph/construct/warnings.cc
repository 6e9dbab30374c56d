// Things that a graph may do but hardly means to.
#include <unordered_map>

#include "graph/construct/checked_graph.h"

namespace anydml {
namespace {

void FindUnusedConstants(const CheckedGraph& graph, std::vector<std::string>* warnings) {
  std::vector<char> used(graph.node_count());
  for (const GraphEdgeDescription& edge : graph.description.intermediate_edges) used[edge.from.index] = 1;
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    if (graph.IsConstant(i) && used[i] == 0) {
      warnings->push_back(graph.NodeName(i) + ": nobody reads the constant");
    }
  }
}

// For every name the first two nodes that have it, because messages could not tell them apart.
void FindEqualNames(const CheckedGraph& graph, std::vector<std::string>* warnings) {
  struct First {
    uint32_t node;
    bool reported;
  };
  std::unordered_map<std::string_view, First> names;
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const std::string& name = graph.description.nodes[i].name;
    if (name.empty()) continue;
    const auto [known, is_new] = names.try_emplace(name, First{i, false});
    if (is_new || known->second.reported) continue;
    known->second.reported = true;
    warnings->push_back(
        StrCat("nodes ", known->second.node, " and ", i, " have the same name \"", name, "\""));
  }
}

}  // namespace

std::vector<std::string> FindWarnings(const CheckedGraph& graph) {
  std::vector<std::string> warnings;
  FindUnusedConstants(graph, &warnings);
  FindEqualNames(graph, &warnings);
  return warnings;
}

}  // namespace anydml
