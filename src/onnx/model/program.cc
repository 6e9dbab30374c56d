#include "onnx/model/program.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace anydml::onnx {
namespace {

// Including functions in bodies of functions, which a file's own depth does not limit.
constexpr int kMaxBodies = 64;

void CollectNames(const NodeProto& node, std::set<std::string>* names);

// The names that a body uses from outside: its own names hide the same names outside.
void CollectNamesAround(const GraphProto& body, std::set<std::string>* names) {
  std::set<std::string> inner, own;
  for (const NodeProto& node : body.nodes) {
    CollectNames(node, &inner);
    own.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueProto& input : body.inputs) own.insert(input.name);
  for (const auto& [name, tensor] : body.initializers) own.insert(name);
  for (const ValueProto& output : body.outputs) inner.insert(output.name);
  std::set_difference(inner.begin(), inner.end(), own.begin(), own.end(),
                      std::inserter(*names, names->end()));
}

// Every outside name that a node or one of its bodies refers to.
void CollectNames(const NodeProto& node, std::set<std::string>* names) {
  for (const std::string& input : node.inputs) {
    if (!input.empty()) names->insert(input);
  }
  for (const Attribute& attribute : node.attributes) {
    if (attribute.graph) CollectNamesAround(*attribute.graph, names);
  }
}

// The host runs Scan, so that no operator's description is checked.
Status CheckDirections(const NodeProto& node) {
  if (!node.domain.empty() || node.type != "Scan") return {};
  for (const char* const name : {"directions", "scan_input_directions", "scan_output_directions"}) {
    const Attribute* const attribute = node.Find(name);
    for (size_t i = 0; attribute != nullptr && i < attribute->integers.size(); ++i) {
      const int64_t direction = attribute->integers[i];
      if (direction != 0 && direction != 1)
        return InvalidArgument(name, "[", i, "] is ", direction, "; 0 and 1 are allowed");
    }
  }
  return {};
}

}  // namespace

std::string Title(const ProgramNode& node) {
  const NodeProto& proto = *node.proto;
  const std::string domain = proto.domain.empty() ? "" : proto.domain + ".";
  const std::string name = proto.name.empty() ? "" : StrCat(" (\"", proto.name.substr(0, 80), "\")");
  return StrCat(domain, proto.type.substr(0, 80), "-", node.version, name);
}

ValueId Program::AddValue(const std::string& name) {
  const auto id = static_cast<ValueId>(values_.size());
  values_.push_back({.name = name});
  if (!name.empty()) ids_[name] = id;
  return id;
}

ValueId Program::Lookup(const std::string& name) {
  if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
  if (around_ == nullptr) return kAbsent;
  const ValueId outer = around_->Lookup(name);
  if (outer == kAbsent) return kAbsent;
  const ValueId inner = AddValue(name);
  if (const Tensor* const weight = around_->values_[outer].initializer; weight != nullptr) {
    values_[inner].initializer = weight;  // a constant here, too
    return inner;
  }
  captures_.push_back({inner, outer});
  return inner;
}

std::string Program::Describe(size_t node) const {
  const NodeProto& proto = *nodes_[node].proto;
  const std::string name = proto.name.empty() ? "" : StrCat(" \"", proto.name.substr(0, 80), "\"");
  return StrCat("node ", node, name, " (", proto.type, "-", nodes_[node].version, ")");
}

Status Program::AddInputs(const GraphProto& graph) {
  for (const auto& [name, tensor] : graph.initializers) {
    values_[AddValue(name)].initializer = &tensor;
  }
  for (const ValueProto& input : graph.inputs) {
    if (const auto found = ids_.find(input.name); found != ids_.end()) {
      ProgramValue& value = values_[found->second];
      if (value.declared != nullptr) return InvalidArgument("input \"", input.name, "\" is declared twice");
      value.declared = &input;
      continue;  // an initializer that old files also list as an input
    }
    const ValueId id = AddValue(input.name);
    values_[id].declared = &input;
    inputs_.push_back(id);
  }
  return {};
}

Status Program::AddOutputsOf(const std::vector<FlatNode>& nodes) {
  for (const FlatNode& node : nodes) {
    for (const std::string& output : node.proto->outputs) {
      if (output.empty()) continue;
      if (ids_.contains(output)) return InvalidArgument("\"", output.substr(0, 80), "\" is written twice");
      AddValue(output);
    }
  }
  return {};
}

// Files normally have their nodes in order; otherwise they are sorted, unless there is a cycle.
Status Program::Order(const std::vector<FlatNode>& nodes, std::vector<size_t>* order) {
  std::map<std::string, size_t> producers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].proto->outputs) {
      if (!output.empty()) producers[output] = i;
    }
  }
  std::vector<std::vector<size_t>> consumers(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<std::string> names;
    CollectNames(*nodes[i].proto, &names);
    for (const std::string& name : names) {
      const auto found = producers.find(name);
      if (found == producers.end()) continue;
      consumers[found->second].push_back(i);
      ++waiting[i];
    }
  }
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waiting[i] == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const size_t next = *ready.begin();
    ready.erase(ready.begin());
    order->push_back(next);
    for (const size_t consumer : consumers[next]) {
      if (--waiting[consumer] == 0) ready.insert(consumer);
    }
  }
  if (order->size() == nodes.size()) return {};
  const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](size_t count) { return count > 0; });
  const auto index = static_cast<size_t>(stuck - waiting.begin());
  return InvalidArgument("node ", index, " (", nodes[index].proto->type.substr(0, 80),
                         ") waits for its own result");
}

// Some exporters write weights as nodes; here they count as weights.
bool Program::TakeConstant(const NodeProto& proto) {
  if (!proto.domain.empty() || proto.type != "Constant" || proto.outputs.size() != 1) return false;
  const Attribute* const value = proto.Find("value");
  const auto id = ids_.find(proto.outputs[0]);
  if (value == nullptr ||
      (value->kind != AttributeKind::kTensor && value->kind != AttributeKind::kUndefined) ||
      BitsOf(value->tensor.type) == 0 || id == ids_.end())
    return false;
  values_[id->second].initializer = &value->tensor;
  return true;
}

Status Program::AddNode(const Model& model, const FlatNode& flat) {
  const NodeProto& proto = *flat.proto;
  if (TakeConstant(proto)) return {};
  ProgramNode node;
  node.proto = &proto;
  const auto opset = flat.opsets->find(proto.domain);
  node.version = opset == flat.opsets->end() ? 1 : opset->second;
  if (const Status status = CheckDirections(proto); !status.ok())
    return Status(status.code(), StrCat(Title(node), ": ", status.message()));
  for (const std::string& input : proto.inputs) {
    const ValueId id = input.empty() ? kAbsent : Lookup(input);
    if (!input.empty() && id == kAbsent) {
      return InvalidArgument("node ", nodes_.size(), " (", proto.type.substr(0, 80), ") reads \"",
                             input.substr(0, 80), "\", which nothing writes");
    }
    node.inputs.push_back(id);
  }
  for (const std::string& output : proto.outputs) {
    const ValueId id = output.empty() ? kAbsent : ids_[output];
    if (id != kAbsent) values_[id].producer = nodes_.size();
    node.outputs.push_back(id);
  }
  for (const Attribute& attribute : proto.attributes) {
    if (!attribute.graph) continue;
    ANYDML_RETURN_IF_ERROR(
        CreateIn(model, *attribute.graph, *flat.opsets, this, &node.bodies[attribute.name]));
  }
  nodes_.push_back(std::move(node));
  return {};
}

void Program::FindLastUses() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const ValueId id : nodes_[i].inputs) {
      if (id != kAbsent) values_[id].last_use = i;
    }
    for (const ValueId id : nodes_[i].outputs) {
      if (id != kAbsent) values_[id].last_use = std::max(values_[id].last_use, i);
    }
    for (const auto& [attribute, body] : nodes_[i].bodies) {
      for (const Capture& capture : body->captures()) values_[capture.outer].last_use = i;
    }
  }
  for (const ValueId id : outputs_) values_[id].last_use = kNever;
}

Status Program::Create(const Model& model, std::unique_ptr<Program>* out) {
  return CreateIn(model, model.graph, model.opsets, nullptr, out);
}

Status Program::CreateIn(const Model& model, const GraphProto& graph, const Opsets& opsets, Program* around,
                         std::unique_ptr<Program>* out) {
  std::unique_ptr<Program> program(new Program);
  program->around_ = around;
  program->depth_ = around == nullptr ? 0 : around->depth_ + 1;
  if (program->depth_ > kMaxBodies)
    return InvalidArgument("bodies are nested more than ", kMaxBodies, " deep");
  Program* outermost = program.get();
  while (outermost->around_ != nullptr) outermost = outermost->around_;
  ANYDML_RETURN_IF_ERROR(program->AddInputs(graph));
  std::vector<FlatNode> nodes;
  ANYDML_RETURN_IF_ERROR(
      InlineFunctions(model, graph, opsets, &outermost->inline_budget_, &program->inlined_, &nodes));
  std::vector<size_t> order;
  ANYDML_RETURN_IF_ERROR(program->Order(nodes, &order));
  ANYDML_RETURN_IF_ERROR(program->AddOutputsOf(nodes));
  for (const size_t index : order) ANYDML_RETURN_IF_ERROR(program->AddNode(model, nodes[index]));
  for (const ValueProto& output : graph.outputs) {
    const ValueId id = program->Lookup(output.name);
    if (id == kAbsent)
      return InvalidArgument("output \"", output.name.substr(0, 80), "\" is written by nothing");
    if (program->values_[id].declared == nullptr) program->values_[id].declared = &output;
    program->outputs_.push_back(id);
  }
  program->FindLastUses();
  *out = std::move(program);
  return {};
}

}  // namespace anydml::onnx
