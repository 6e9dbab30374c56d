#include "onnx/graph_builder.h"

#include <algorithm>

namespace anydml::onnx {
namespace {

// Initialisation packs what it owns; a constant of a few bytes is not worth a binding.
constexpr size_t kSmallConstant = 64;

// The three operators that take no OWNED_BY_DML tensor, and so read constants of the graph.
bool TakesOwned(DML_OPERATOR_TYPE type) {
  return type != DML_OPERATOR_RNN && type != DML_OPERATOR_LSTM && type != DML_OPERATOR_GRU;
}

}  // namespace

Source GraphBuilder::Input(ValueId value) {
  const auto [found, added] = input_ids_.try_emplace(value, static_cast<uint32_t>(inputs_.size()));
  if (added) inputs_.push_back(value);
  return {Source::Kind::kInput, found->second, 0};
}

Source GraphBuilder::Constant(const Tensor& tensor) {
  const auto key = std::pair(tensor.data.data(), std::pair(tensor.type, tensor.data.size()));
  const auto [found, added] = constant_ids_.try_emplace(key, static_cast<uint32_t>(constants_.size()));
  if (added) constants_.push_back(tensor);
  return {Source::Kind::kConstant, found->second, 0};
}

void GraphBuilder::Fill(const View& view, bool owned, DML_TENSOR_DESC* out) {
  const View& kept = views_.emplace_back(view);
  DML_BUFFER_TENSOR_DESC& buffer = buffers_.emplace_back();
  buffer.DataType = static_cast<DML_TENSOR_DATA_TYPE>(kept.type);
  buffer.Flags = owned ? DML_TENSOR_FLAG_OWNED_BY_DML : DML_TENSOR_FLAG_NONE;
  buffer.DimensionCount = static_cast<UINT>(kept.rank());
  buffer.Sizes = kept.sizes.data();
  buffer.Strides = kept.strides.data();
  buffer.TotalTensorSizeInBytes = kept.bytes;
  *out = {DML_TENSOR_TYPE_BUFFER, &buffer};
}

const DML_TENSOR_DESC* GraphBuilder::InArray(std::span<const View> views) {
  std::vector<DML_TENSOR_DESC>& descs = tensors_.emplace_back(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    const Source& source = views[i].source;
    const bool owned =
        source.kind == Source::Kind::kConstant && constants_[source.index].data.size() > kSmallConstant;
    Fill(views[i], owned, &descs[i]);
    pending_inputs_.push_back(source);
    empty_input_ |= views[i].empty();
  }
  return descs.data();
}

const DML_TENSOR_DESC* GraphBuilder::In(const View* view) {
  if (view != nullptr) return InArray({view, 1});
  pending_inputs_.emplace_back();
  return nullptr;
}

const DML_TENSOR_DESC* GraphBuilder::OutArray(std::span<View> views) {
  std::vector<DML_TENSOR_DESC>& descs = tensors_.emplace_back(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    Fill(views[i], false, &descs[i]);
    pending_outputs_.push_back(&views[i]);
  }
  return descs.data();
}

const DML_TENSOR_DESC* GraphBuilder::Out(View* view) {
  if (view != nullptr) return OutArray({view, 1});
  pending_outputs_.push_back(nullptr);
  return nullptr;
}

Status GraphBuilder::AddNode(const DML_OPERATOR_DESC& desc) {
  const std::vector<Source> inputs = std::exchange(pending_inputs_, {});
  const std::vector<View*> outputs = std::exchange(pending_outputs_, {});
  const bool empty_input = std::exchange(empty_input_, false);
  if (!TakesOwned(desc.Type)) {
    for (DML_BUFFER_TENSOR_DESC& buffer : buffers_) buffer.Flags = DML_TENSOR_FLAG_NONE;
  }
  Status status;
  Node node;
  const bool nothing_to_do = std::any_of(outputs.begin(), outputs.end(),
                                         [](const View* view) { return view != nullptr && view->empty(); });
  if (!nothing_to_do) {
    status = empty_input ? InvalidArgument("an input without elements") : maker_.Make(desc, &node.op);
    // The model may be valid all the same: a type or a number of dimensions that DirectML does not have.
    if (status.code() == Code::kInvalidArgument) status = Status(Code::kUnsupported, status.message());
  }
  tensors_.clear();
  buffers_.clear();
  views_.clear();
  if (nothing_to_do || !status.ok()) return status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    outputs[i]->source = {Source::Kind::kNode, static_cast<uint32_t>(nodes_.size()),
                          static_cast<uint32_t>(i)};
  }
  node.origin = origin_;
  node.inputs = inputs;
  // By their kind: a constant that is owned for one operator is none for the three others.
  if (!TakesOwned(desc.Type)) {
    for (Source& source : node.inputs)
      source.output = source.kind == Source::Kind::kConstant ? 1 : source.output;
  }
  nodes_.push_back(std::move(node));
  return {};
}

std::vector<bool> GraphBuilder::NeededNodes(std::span<const Source> outputs) const {
  std::vector<bool> needed(nodes_.size(), false);
  for (const Source& source : outputs) needed[source.index] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {  // a node's inputs come before it
    if (!needed[i]) continue;
    for (const Source& source : nodes_[i].inputs) {
      if (source.kind == Source::Kind::kNode) needed[source.index] = true;
    }
  }
  return needed;
}

void GraphBuilder::Describe(std::span<const Source> outputs, Description* out) const {
  const std::vector<bool> needed = NeededNodes(outputs);
  std::vector<UINT> numbers(nodes_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!needed[i]) continue;
    numbers[i] = static_cast<UINT>(out->nodes.size());
    const auto& op = out->operators.emplace_back(
        DML_OPERATOR_GRAPH_NODE_DESC{nodes_[i].op.Get(), nodes_[i].origin.c_str()});
    out->nodes.push_back({DML_GRAPH_NODE_TYPE_OPERATOR, &op});
  }

  std::map<Source, UINT> graph_inputs, constant_nodes;
  const auto connect_input = [&](const Source& source, UINT node, UINT slot) {
    const auto [found, added] = graph_inputs.try_emplace(source, static_cast<UINT>(out->inputs.size()));
    if (added) {
      const bool constant = source.kind == Source::Kind::kConstant;
      out->inputs.push_back(
          {constant ? kAbsent : inputs_[source.index], constant ? &constants_[source.index] : nullptr});
    }
    out->input_edges.push_back({found->second, node, slot, nullptr});
  };
  const auto connect_constant = [&](const Source& source, UINT node, UINT slot) {
    const auto [found, added] = constant_nodes.try_emplace(source, static_cast<UINT>(out->nodes.size()));
    if (added) {
      const Tensor& tensor = constants_[source.index];
      const auto& desc = out->constants.emplace_back(
          DML_CONSTANT_DATA_GRAPH_NODE_DESC{tensor.data.data(), tensor.data.size(), nullptr});
      out->nodes.push_back({DML_GRAPH_NODE_TYPE_CONSTANT, &desc});
    }
    out->intermediate_edges.push_back({found->second, 0, node, slot, nullptr});
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!needed[i]) continue;
    for (UINT slot = 0; slot < nodes_[i].inputs.size(); ++slot) {
      const Source& source = nodes_[i].inputs[slot];
      if (source.kind == Source::Kind::kNode) {
        out->intermediate_edges.push_back({numbers[source.index], source.output, numbers[i], slot, nullptr});
      } else if (source.kind == Source::Kind::kInput) {
        connect_input(source, numbers[i], slot);
      } else if (source.kind == Source::Kind::kConstant) {
        const bool owned = constants_[source.index].data.size() > kSmallConstant && source.output == 0;
        owned ? connect_input(source, numbers[i], slot) : connect_constant(source, numbers[i], slot);
      }
    }
  }
  for (UINT i = 0; i < outputs.size(); ++i) {
    out->output_edges.push_back({numbers[outputs[i].index], outputs[i].output, i, nullptr});
  }

  for (const auto& edge : out->input_edges) out->inputs_desc.push_back({DML_GRAPH_EDGE_TYPE_INPUT, &edge});
  for (const auto& edge : out->intermediate_edges) {
    out->intermediates_desc.push_back({DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &edge});
  }
  for (const auto& edge : out->output_edges) out->outputs_desc.push_back({DML_GRAPH_EDGE_TYPE_OUTPUT, &edge});
  out->desc.InputCount = static_cast<UINT>(out->inputs.size());
  out->desc.OutputCount = static_cast<UINT>(outputs.size());
  out->desc.NodeCount = static_cast<UINT>(out->nodes.size());
  out->desc.Nodes = out->nodes.data();
  out->desc.InputEdgeCount = static_cast<UINT>(out->inputs_desc.size());
  out->desc.InputEdges = out->inputs_desc.data();
  out->desc.OutputEdgeCount = static_cast<UINT>(out->outputs_desc.size());
  out->desc.OutputEdges = out->outputs_desc.data();
  out->desc.IntermediateEdgeCount = static_cast<UINT>(out->intermediates_desc.size());
  out->desc.IntermediateEdges = out->intermediates_desc.data();
}

}  // namespace anydml::onnx
