// The order in which nodes run, and the check that each node's results are used.
#include <algorithm>
#include <functional>
#include <queue>

#include "graph/construct/checked_graph.h"

namespace anydml {
namespace {

// `waiting` is not 0 for nodes in cycles and after them. Each such node waits for another, so going back
// often enough ends in a cycle.
std::string FindCycle(const CheckedGraph& graph, const std::vector<uint32_t>& waiting) {
  std::vector<uint32_t> before(graph.node_count(), kNoValue);
  for (const GraphEdgeDescription& edge : graph.description.intermediate_edges) {
    if (waiting[edge.from.index] != 0 && waiting[edge.to.index] != 0) before[edge.to.index] = edge.from.index;
  }
  uint32_t node = 0;
  while (waiting[node] == 0) ++node;
  for (uint32_t i = 0; i < graph.node_count(); ++i) node = before[node];
  std::vector<uint32_t> cycle;
  for (uint32_t at = node; cycle.empty() || at != node; at = before[at]) cycle.push_back(at);
  if (cycle.size() == 1) return StrCat(graph.NodeName(node), " feeds itself");
  std::sort(cycle.begin(), cycle.end());
  std::string names;
  for (const uint32_t member : cycle) names += StrCat(names.empty() ? "nodes " : ", ", member);
  return names + " form a cycle";
}

// Nodes run as soon as they can; among those that can, the lowest index first.
Status Order(CheckedGraph* graph) {
  std::vector<uint32_t> waiting(graph->node_count());
  std::vector<std::vector<uint32_t>> followers(graph->node_count());
  for (const GraphEdgeDescription& edge : graph->description.intermediate_edges) {
    ++waiting[edge.to.index];
    followers[edge.from.index].push_back(edge.to.index);
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < graph->node_count(); ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  uint32_t ordered = 0;
  while (!ready.empty()) {
    const uint32_t node = ready.top();
    ready.pop();
    ++ordered;
    if (!graph->IsConstant(node)) graph->order.push_back(node);
    for (const uint32_t follower : followers[node]) {
      if (--waiting[follower] == 0) ready.push(follower);
    }
  }
  if (ordered == graph->node_count()) return {};
  return InvalidArgument(FindCycle(*graph, waiting), "; a graph must not have cycles");
}

Status CheckReachable(const CheckedGraph& graph) {
  std::vector<char> useful(graph.node_count());
  for (const GraphEdgeDescription& edge : graph.description.output_edges) useful[edge.from.index] = 1;
  for (auto node = graph.order.rbegin(); node != graph.order.rend(); ++node) {
    if (useful[*node] == 0) {
      return InvalidArgument(graph.NodeName(*node), ": none of its outputs leads to a graph output");
    }
    for (const GraphFeed& feed : graph.nodes[*node].feeds) {
      if (feed.kind == GraphFeed::Kind::kIntermediateEdge) {
        useful[graph.description.intermediate_edges[feed.edge].from.index] = 1;
      }
    }
  }
  return {};
}

}  // namespace

Status OrderNodes(CheckedGraph* graph) {
  ANYDML_RETURN_IF_ERROR(Order(graph));
  return CheckReachable(*graph);
}

}  // namespace anydml
