#include "onnx/model/graph_edit.h"

#include <algorithm>

namespace anydml::onnx {
namespace {

void CountUses(const std::vector<NodeProto>& nodes, std::map<std::string, size_t>* uses) {
  for (const NodeProto& node : nodes) {
    for (const std::string& input : node.inputs) ++(*uses)[input];
    for (const Attribute& attribute : node.attributes) {
      if (!attribute.graph) continue;
      CountUses(attribute.graph->nodes, uses);
      for (const ValueProto& output : attribute.graph->outputs) ++(*uses)[output.name];
    }
  }
}

}  // namespace

GraphEdit::GraphEdit(GraphProto* graph, const char* prefix) : graph_(*graph), prefix_(prefix) {
  // Names that are defined twice have no producer: passes ignore them, and the program refuses them.
  for (NodeProto& node : graph_.nodes) {
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      const auto [found, added] = producers_.try_emplace(output, &node);
      if (!added || graph_.initializers.contains(output)) found->second = nullptr;
    }
  }
  for (const ValueProto& input : graph_.inputs) {
    if (const auto found = producers_.find(input.name); found != producers_.end()) found->second = nullptr;
  }
  CountUses(graph_.nodes, &uses_);
  for (const ValueProto& output : graph_.outputs) ++uses_[output.name];
  for (const ValueProto& input : graph_.inputs) uses_.try_emplace(input.name);
}

NodeProto* GraphEdit::Producer(const std::string& name) const {
  const auto found = producers_.find(name);
  const bool known = found != producers_.end() && found->second != nullptr && found->second->domain.empty();
  return known ? found->second : nullptr;
}

const Tensor* GraphEdit::Constant(const std::string& name) const {
  if (const auto found = graph_.initializers.find(name); found != graph_.initializers.end())
    return &found->second;
  const NodeProto* const node = Producer(name);
  const bool constant = node != nullptr && node->type == "Constant" && node->inputs.empty();
  const Attribute* const value = constant ? node->Find("value") : nullptr;
  return value == nullptr ? nullptr : &value->tensor;
}

void GraphEdit::Leave(const std::string& first) {
  std::vector<std::string> names = {first};
  while (!names.empty()) {
    const std::string name = std::move(names.back());
    names.pop_back();
    if (name.empty() || --uses_[name] > 0) continue;
    const NodeProto* const node = Producer(name);
    if (node == nullptr || node->outputs.size() != 1) continue;
    dead_.insert(name);
    names.insert(names.end(), node->inputs.begin(), node->inputs.end());
  }
}

std::string GraphEdit::Add(Tensor tensor) {
  std::string name = NewName();
  graph_.initializers[name] = std::move(tensor);
  return name;
}

std::string GraphEdit::NewName() {
  std::string name;
  do {
    name = StrCat(prefix_, " ", ++added_);
  } while (graph_.initializers.contains(name) || producers_.contains(name) || uses_.contains(name));
  return name;
}

void GraphEdit::RemoveDead(std::vector<NodeProto>* nodes) const {
  std::erase_if(*nodes, [this](const NodeProto& node) {
    return std::ranges::any_of(node.outputs, [this](const std::string& name) { return IsDead(name); });
  });
}

bool HasOnlyKnownOperators(const Model& model) {
  return std::ranges::none_of(model.functions,
                              [](const FunctionProto& function) { return function.domain.empty(); });
}

}  // namespace anydml::onnx
