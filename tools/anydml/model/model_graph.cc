#include "anydml/model/model_graph.h"

#include <algorithm>
#include <deque>

#include "anydml/model/model_device.h"
#include "client/c_desc.h"
#include "client/describe/operator_facts.h"
#include "client/text.h"

namespace anydml::client {
namespace {

// The bytes of a buffer that contain a value.
struct Extent {
  uint64_t begin;
  uint64_t end;
  uint32_t value;
};

class Maker {
 public:
  Maker(const Model& model, bool only_shown, ModelGraph* graph)
      : model_(model),
        only_shown_(only_shown),
        graph_(*graph),
        written_(model.buffers.size()),
        initial_(model.buffers.size()) {}

  Status Make() {
    graph_.execution_flags = ~uint32_t{0};
    for (const ModelCommand& command : model_.commands) {
      if (const auto* dispatch = std::get_if<DispatchCommand>(&command.action)) {
        ANYDML_RETURN_IF_ERROR(Add(command.where, *dispatch));
      } else {
        std::visit([this](const auto& action) { Show(action); }, command.action);
      }
    }
    for (uint32_t i = 0; i < graph_.values.size(); ++i) {
      ModelGraph::Value& value = graph_.values[i];
      if (value.node == ModelGraph::kNone) continue;
      if (!value.is_shown && (value.is_read || only_shown_)) continue;
      value.output = static_cast<uint32_t>(graph_.outputs.size());
      graph_.outputs.push_back(i);
    }
    return {};
  }

 private:
  template <typename Action>
  void Show(const Action& action) {
    for (const Extent& extent : written_[action.buffer]) graph_.values[extent.value].is_shown = true;
  }
  void Show(const DispatchCommand&) {}

  Status Add(const std::string& where, const DispatchCommand& dispatch) {
    const ModelOperator& op = model_.operators[dispatch.op];
    ModelGraph::Node node{dispatch.op, {}, {}};
    graph_.execution_flags &= op.execution_flags;
    const auto inputs = op.desc.inputs(), outputs = op.desc.outputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      uint32_t value = ModelGraph::kNone;
      const bool owned = inputs[i] != nullptr && inputs[i]->owned_by_dml;
      const ModelBinding& binding = owned ? op.owned[i] : dispatch.inputs[i];
      if (inputs[i] != nullptr) ANYDML_RETURN_IF_ERROR(Read(where, binding, *inputs[i], &value));
      node.inputs.push_back(value);
    }
    const auto number = static_cast<uint32_t>(graph_.nodes.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool present = outputs[i] != nullptr;
      node.outputs.push_back(present ? AddValue({.buffer = dispatch.outputs[i].buffer,
                                                 .offset = dispatch.outputs[i].offset,
                                                 .tensor = outputs[i],
                                                 .node = number,
                                                 .port = static_cast<uint32_t>(i)})
                                     : ModelGraph::kNone);
      if (present) Write(dispatch.outputs[i], outputs[i]->total_bytes, node.outputs.back());
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  Status Read(const std::string& where, const ModelBinding& binding, const TensorDesc& tensor,
              uint32_t* value) {
    const uint64_t begin = binding.offset, end = begin + tensor.total_bytes;
    // Inputs that DirectML owns were bound before the first dispatch.
    if (!tensor.owned_by_dml) {
      const auto& extents = written_[binding.buffer];
      for (auto latest = extents.rbegin(); latest != extents.rend(); ++latest) {
        const Extent& extent = *latest;
        if (extent.end <= begin || extent.begin >= end) continue;
        if (extent.begin != begin || extent.end != end) {
          const ModelGraph::Node& writer = graph_.nodes[graph_.values[extent.value].node];
          return InvalidArgument(where, "reads bytes ", begin, " to ", end - 1, " of '",
                                 Printable(model_.buffers[binding.buffer].name), "', of which '",
                                 Printable(model_.operators[writer.op].name), "' writes ", extent.begin,
                                 " to ", extent.end - 1, "; edges of graphs have whole tensors");
        }
        *value = extent.value;
        graph_.values[*value].is_read = true;
        return {};
      }
    }
    *value = InputAt(binding, tensor);
    return {};
  }

  // The graph input for a buffer's initial contents. Each has a place and an owner.
  uint32_t InputAt(const ModelBinding& binding, const TensorDesc& tensor) {
    auto& known = initial_[binding.buffer];
    const auto same = std::find_if(known.begin(), known.end(), [&](const Extent& extent) {
      return extent.begin == binding.offset &&
             graph_.values[extent.value].tensor->owned_by_dml == tensor.owned_by_dml;
    });
    if (same != known.end()) return same->value;
    const uint32_t value = AddValue({.buffer = binding.buffer,
                                     .offset = binding.offset,
                                     .tensor = &tensor,
                                     .port = static_cast<uint32_t>(graph_.inputs.size())});
    graph_.inputs.push_back(value);
    known.push_back({binding.offset, binding.offset + tensor.total_bytes, value});
    return value;
  }

  // Values that it replaces only partially stay listed, so that reading their rest is detected.
  void Write(const ModelBinding& binding, uint64_t bytes, uint32_t value) {
    const uint64_t begin = binding.offset, end = begin + bytes;
    auto& extents = written_[binding.buffer];
    std::erase_if(extents, [&](const Extent& extent) { return extent.begin >= begin && extent.end <= end; });
    extents.push_back({begin, end, value});
  }

  uint32_t AddValue(const ModelGraph::Value& value) {
    graph_.values.push_back(value);
    return static_cast<uint32_t>(graph_.values.size() - 1);
  }

  const Model& model_;
  const bool only_shown_;
  ModelGraph& graph_;
  std::vector<std::vector<Extent>> written_;  // per buffer: what dispatches have written so far, in order
  std::vector<std::vector<Extent>> initial_;  // per buffer: what dispatches read of its initial values
};

}  // namespace

Status MakeModelGraph(const Model& model, bool only_shown, ModelGraph* out) {
  return Maker(model, only_shown, out).Make();
}

Status CompileModelGraph(const Model& model, const ModelGraph& graph, Session* session,
                         CompiledOperator* out) {
  std::deque<CDesc> descs;
  GraphPlan plan;
  plan.input_count = static_cast<uint32_t>(graph.inputs.size());
  plan.output_count = static_cast<uint32_t>(graph.outputs.size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const ModelOperator& op = model.operators[graph.nodes[i].op];
    const DML_OPERATOR_DESC& desc = descs.emplace_back(op.desc).get();
    ANYDML_RETURN_IF_ERROR(At(op.where, CheckOperator(desc, session->feature_level())));
    plan.nodes.push_back({&desc, op.name.c_str()});
    for (uint32_t t = 0; t < graph.nodes[i].inputs.size(); ++t) {
      if (graph.nodes[i].inputs[t] == ModelGraph::kNone) continue;
      const ModelGraph::Value& value = graph.values[graph.nodes[i].inputs[t]];
      const char* const name = model.buffers[value.buffer].name.c_str();
      if (value.node == ModelGraph::kNone) {
        plan.input_edges.push_back({value.port, i, t, name});
      } else {
        plan.intermediate_edges.push_back({value.node, value.port, i, t, name});
      }
    }
  }
  for (uint32_t i = 0; i < graph.outputs.size(); ++i) {
    const ModelGraph::Value& value = graph.values[graph.outputs[i]];
    plan.output_edges.push_back({value.node, value.port, i, model.buffers[value.buffer].name.c_str()});
  }
  return session->CompileGraph(plan, static_cast<DML_EXECUTION_FLAGS>(graph.execution_flags), out);
}

}  // namespace anydml::client
