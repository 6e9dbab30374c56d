#include "onnx/model/functions.h"

#include <algorithm>
#include <set>

namespace anydml::onnx {
namespace {

// Nested calls of functions.
constexpr int kMaxCalls = 32;

using Names = std::map<std::string, std::string>;

std::string Renamed(const std::string& name, const Names& names) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

void RenameGraph(Names names, GraphProto* graph);

// The cost of a copy, in names, numbers and the like.
size_t Weight(const NodeProto& node) {
  size_t weight = 1 + node.inputs.size() + node.outputs.size();
  for (const Attribute& attribute : node.attributes) {
    weight += 1 + attribute.text.size() / 64 + attribute.numbers.size() + attribute.integers.size() +
              attribute.texts.size();
    if (!attribute.graph) continue;
    const GraphProto& graph = *attribute.graph;
    weight += graph.inputs.size() + graph.outputs.size() + graph.initializers.size();
    for (const NodeProto& inner : graph.nodes) weight += Weight(inner);
  }
  return weight;
}

// Resolves attributes that refer to the caller's, which may be absent; also in bodies, which belong to this
// node.
void ResolveReferences(const std::map<std::string, const Attribute*>& given, NodeProto* node) {
  std::erase_if(node->attributes, [&](Attribute& attribute) {
    if (attribute.reference.empty()) {
      if (!attribute.graph) return false;
      for (NodeProto& inner : attribute.graph->nodes) ResolveReferences(given, &inner);
      return false;
    }
    const auto found = given.find(attribute.reference);
    if (found == given.end()) return true;
    const std::string name = attribute.name;
    attribute = *found->second;
    attribute.name = name;
    return false;
  });
}

void RenameNode(const Names& names, NodeProto* node) {
  for (std::string& input : node->inputs) input = Renamed(input, names);
  for (std::string& output : node->outputs) output = Renamed(output, names);
  for (Attribute& attribute : node->attributes) {
    if (!attribute.graph) continue;
    attribute.graph = std::make_shared<GraphProto>(*attribute.graph);
    RenameGraph(names, attribute.graph.get());
  }
}

// A body's own names stay; those of the enclosing function change.
void RenameGraph(Names names, GraphProto* graph) {
  for (const ValueProto& input : graph->inputs) names.erase(input.name);
  for (const auto& [name, tensor] : graph->initializers) names.erase(name);
  for (const NodeProto& node : graph->nodes) {
    for (const std::string& output : node.outputs) names.erase(output);
  }
  for (NodeProto& node : graph->nodes) RenameNode(names, &node);
  for (ValueProto& output : graph->outputs) output.name = Renamed(output.name, names);
}

class Inliner {
 public:
  Inliner(const Model& model, size_t* budget, std::deque<NodeProto>* storage, std::vector<FlatNode>* out)
      : model_(model), budget_(*budget), storage_(*storage), out_(*out) {}

  Status Add(const NodeProto& node, const Opsets& opsets, int depth) {
    const FunctionProto* const function = Find(node);
    if (function == nullptr) {
      out_.push_back({&node, &opsets});
      return {};
    }
    const auto too_much = [&] {
      return InvalidArgument("function ", function->name.substr(0, 80),
                             " calls too many functions, or itself");
    };
    if (depth > kMaxCalls) return too_much();
    for (const NodeProto& inner : function->nodes) {
      const size_t weight = Weight(inner);
      if (weight > budget_) return too_much();
      budget_ -= weight;
    }
    return Inline(node, *function, depth);
  }

 private:
  const FunctionProto* Find(const NodeProto& node) const {
    const auto found =
        std::find_if(model_.functions.begin(), model_.functions.end(), [&](const FunctionProto& function) {
          return function.name == node.type && function.domain == node.domain &&
                 function.overload == node.overload;
        });
    return found == model_.functions.end() ? nullptr : &*found;
  }

  Status Inline(const NodeProto& call, const FunctionProto& function, int depth) {
    Names names;
    const std::string prefix = StrCat(function.name, "#", ++calls_, "/");
    for (const NodeProto& node : function.nodes) {
      for (const std::string& output : node.outputs) {
        if (!output.empty()) names[output] = prefix + output;
      }
    }
    for (size_t i = 0; i < function.inputs.size(); ++i)
      names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
    for (size_t i = 0; i < function.outputs.size() && i < call.outputs.size(); ++i) {
      if (!call.outputs[i].empty()) names[function.outputs[i]] = call.outputs[i];
    }
    std::map<std::string, const Attribute*> given;
    for (const Attribute& attribute : function.defaults) given[attribute.name] = &attribute;
    for (const Attribute& attribute : call.attributes) given[attribute.name] = &attribute;
    for (const NodeProto& node : function.nodes) {
      NodeProto& copy = storage_.emplace_back(node);
      RenameNode(names, &copy);
      ResolveReferences(given, &copy);
      ANYDML_RETURN_IF_ERROR(Add(copy, function.opsets.empty() ? model_.opsets : function.opsets, depth + 1));
    }
    return {};
  }

  const Model& model_;
  size_t& budget_;
  std::deque<NodeProto>& storage_;
  std::vector<FlatNode>& out_;
  uint64_t calls_ = 0;
};

}  // namespace

Status InlineFunctions(const Model& model, const GraphProto& graph, const Opsets& opsets, size_t* budget,
                       std::deque<NodeProto>* storage, std::vector<FlatNode>* out) {
  Inliner inliner(model, budget, storage, out);
  for (const NodeProto& node : graph.nodes) ANYDML_RETURN_IF_ERROR(inliner.Add(node, opsets, 0));
  return {};
}

}  // namespace anydml::onnx
