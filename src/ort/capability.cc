#include "ort/capability.h"

#include <algorithm>
#include <map>
#include <set>

#include "onnx/lower/lowering.h"
#include "ort/node_trial.h"

namespace anydml::ort {
namespace {

const onnx::OperatorRow* RowOf(const GraphNode& node) {
  return onnx::FindOperator(node.proto.domain, node.proto.type);
}

// Nodes that are computed while a model is compiled: sizes, and what is made of them and of constants.
class SizeArithmetic {
 public:
  explicit SizeArithmetic(const Graph& graph) : graph_(graph) {
    for (const GraphNode& node : graph.nodes) {
      if (Contains(node)) values_.insert(node.proto.outputs.begin(), node.proto.outputs.end());
    }
  }
  bool Contains(const GraphNode& node) const {
    const onnx::OperatorRow* const row = RowOf(node);
    if (row == nullptr || !node.readable || row->on_host || row->random) return false;
    if (node.proto.domain.empty() && (node.proto.type == "Shape" || node.proto.type == "Size")) return true;
    if (row->evaluate == nullptr && !row->forwards) return false;
    return std::all_of(node.proto.inputs.begin(), node.proto.inputs.end(), [&](const std::string& name) {
      return name.empty() || values_.contains(name) || graph_.values.at(name).constant;
    });
  }

 private:
  const Graph& graph_;
  std::set<std::string> values_;
};

bool IsKnownType(const GraphValue& value) {
  return value.facts.kind == onnx::ValueKind::kTensor &&
         onnx::DmlType(value.facts.type) != DataType::kUnknown;
}

std::string WhyNot(const Api& api, const Graph& graph, const GraphNode& node, const SizeArithmetic& sizes,
                   uint32_t feature_level, size_t* budget) {
  const onnx::OperatorRow* const row = RowOf(node);
  if (row == nullptr) return "no such operator is known";
  if (!node.readable) return "it has graphs or attributes of another kind inside";
  if (row->on_host || row->random) return "its result depends on more than sizes: the host computes it";
  for (const std::vector<std::string>* const names : {&node.proto.inputs, &node.proto.outputs}) {
    for (const std::string& name : *names) {
      if (!name.empty() && !IsKnownType(graph.values.at(name)))
        return StrCat("\"", name, "\" has a type that DirectML does not have");
    }
  }
  if (sizes.Contains(node)) return "";
  return NodeTrial(api, graph, node, feature_level, budget).Run().message();
}

// Whether it computes on a model's data rather than on positions.
bool IsWork(const Graph& graph, const GraphNode& node) {
  if (RowOf(node)->forwards) return false;
  const auto is_number = [&](const std::string& name) {
    if (name.empty()) return false;
    const onnx::ElementType type = graph.values.at(name).facts.type;
    return onnx::IsFloat(type) || onnx::BitsOf(type) == 8;
  };
  return std::any_of(node.proto.inputs.begin(), node.proto.inputs.end(), is_number);
}

}  // namespace

std::vector<std::string> RefusedNodes(const Api& api, const Graph& graph, uint32_t feature_level) {
  const SizeArithmetic sizes(graph);
  std::vector<std::string> refused;
  size_t budget = NodeTrial::kMostLowerings;
  for (const GraphNode& node : graph.nodes) {
    refused.push_back(WhyNot(api, graph, node, sizes, feature_level, &budget));
  }
  return refused;
}

std::vector<std::vector<size_t>> GroupNodes(const Graph& graph, const std::vector<std::string>& refused) {
  const size_t count = graph.nodes.size();
  std::map<std::string, size_t> producers;
  std::vector<std::vector<size_t>> before(count), after(count);
  for (size_t i = 0; i < count; ++i) {
    for (const std::vector<std::string>* const names :
         {&graph.nodes[i].proto.inputs, &graph.nodes[i].captures}) {
      for (const std::string& name : *names) {
        const auto producer = producers.find(name);
        if (name.empty() || producer == producers.end()) continue;
        before[i].push_back(producer->second);
        after[producer->second].push_back(i);
      }
    }
    for (const std::string& name : graph.nodes[i].proto.outputs) producers[name] = i;
  }

  const SizeArithmetic sizes(graph);
  std::vector<bool> taken(count);
  for (size_t i = count; i-- > 0;) {
    taken[i] = refused[i].empty() &&
               (!sizes.Contains(graph.nodes[i]) ||
                std::any_of(after[i].begin(), after[i].end(), [&](size_t reader) { return taken[reader]; }));
  }
  // Ours and others take turns; a node's turn is the earliest in which its inputs are available. Nodes of one
  // turn need nothing from other providers in between.
  std::vector<size_t> turn(count, 0);
  std::map<size_t, std::vector<size_t>> groups;
  for (size_t i = 0; i < count; ++i) {
    for (const size_t source : before[i]) {
      turn[i] = std::max(turn[i], turn[source] + (taken[source] && !taken[i] ? 1 : 0));
    }
    if (taken[i]) groups[turn[i]].push_back(i);
  }
  std::vector<std::vector<size_t>> worthwhile;
  for (auto& [number, nodes] : groups) {
    const bool works = std::any_of(nodes.begin(), nodes.end(), [&](size_t i) {
      return !sizes.Contains(graph.nodes[i]) && IsWork(graph, graph.nodes[i]);
    });
    if (works) worthwhile.push_back(std::move(nodes));
  }
  return worthwhile;
}

}  // namespace anydml::ort
