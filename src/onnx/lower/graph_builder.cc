#include "onnx/lower/graph_builder.h"

#include <algorithm>

namespace anydml::onnx {
namespace {

// All operators except three take OWNED_BY_DML tensors; these three read constants of the graph, or copies.
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
    Fill(views[i], IsOwned(source), &descs[i]);
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

// Copies of constants, for an operator that cannot own them.
Status GraphBuilder::AddCopies(std::vector<Source>* inputs) {
  for (Source& source : *inputs) {
    if (source.kind != Source::Kind::kConstant) continue;
    const Tensor& constant = constants_[source.index];
    const View view = PackedView(DmlType(constant.type), Shape{1, 1, 1, constant.count()});
    DML_BUFFER_TENSOR_DESC read{static_cast<DML_TENSOR_DATA_TYPE>(view.type),
                                DML_TENSOR_FLAG_OWNED_BY_DML,
                                4,
                                view.sizes.data(),
                                nullptr,
                                view.bytes,
                                0};
    DML_BUFFER_TENSOR_DESC written = read;
    written.Flags = DML_TENSOR_FLAG_NONE;
    const DML_TENSOR_DESC x{DML_TENSOR_TYPE_BUFFER, &read}, y{DML_TENSOR_TYPE_BUFFER, &written};
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc{&x, &y, nullptr};
    Node node;
    ANYDML_RETURN_IF_ERROR(maker_.Make({DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc}, &node.op));
    node.origin = origin_;
    node.inputs = {source};
    node.output_bytes = {view.bytes};
    source = {Source::Kind::kNode, static_cast<uint32_t>(nodes_.size()), 0};
    nodes_.push_back(std::move(node));
  }
  return {};
}

Status GraphBuilder::AddNode(const DML_OPERATOR_DESC& desc) {
  std::vector<Source> inputs = std::exchange(pending_inputs_, {});
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
    // The model may still be valid: DirectML lacks a type or a rank.
    if (status.code() == Code::kInvalidArgument) status = Status(Code::kUnsupported, status.message());
  }
  tensors_.clear();
  buffers_.clear();
  views_.clear();
  if (nothing_to_do || !status.ok()) return status;
  if (!TakesOwned(desc.Type) && !maker_.has_constant_nodes()) ANYDML_RETURN_IF_ERROR(AddCopies(&inputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    node.output_bytes.push_back(outputs[i] != nullptr ? outputs[i]->bytes : 0);
    if (outputs[i] == nullptr) continue;
    outputs[i]->source = {Source::Kind::kNode, static_cast<uint32_t>(nodes_.size()),
                          static_cast<uint32_t>(i)};
  }
  node.origin = origin_;
  node.inputs = inputs;
  // By kind: a constant that one operator owns is not available to the other three.
  if (!TakesOwned(desc.Type)) {
    for (Source& source : node.inputs)
      source.output = source.kind == Source::Kind::kConstant ? 1 : source.output;
  }
  nodes_.push_back(std::move(node));
  return {};
}

}  // namespace anydml::onnx
