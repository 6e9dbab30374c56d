#include "anydml/model/model_device.h"

#include "client/c_desc.h"

namespace anydml::client {
namespace {

std::vector<bool> Presence(const std::vector<const TensorDesc*>& tensors) {
  std::vector<bool> present;
  for (const TensorDesc* tensor : tensors) present.push_back(tensor != nullptr);
  return present;
}

}  // namespace

Status At(const std::string& where, const Status& status) {
  return status.ok() ? status : Status(status.code(), where + status.message());
}

Status ModelOnDevice::Upload() {
  for (ModelBuffer& buffer : model_.buffers) {
    ANYDML_RETURN_IF_ERROR(session_->Upload(buffer.bytes, &buffers_.emplace_back()));
    buffer.bytes = std::vector<std::byte>();
  }
  return {};
}

Status ModelOnDevice::Prepare() {
  ANYDML_RETURN_IF_ERROR(Upload());
  for (const ModelOperator& op : model_.operators) ANYDML_RETURN_IF_ERROR(At(op.where, Compile(op)));
  return {};
}

Status ModelOnDevice::PrepareAsGraph() {
  ANYDML_RETURN_IF_ERROR(Upload());
  ANYDML_RETURN_IF_ERROR(MakeModelGraph(model_, /*only_shown=*/true, &graph_));
  CompiledOperator& compiled = operators_.emplace_back();
  ANYDML_RETURN_IF_ERROR(CompileModelGraph(model_, graph_, session_, &compiled));
  return session_->Initialize(BindValues(graph_.inputs, /*owned=*/true), &compiled);
}

Status ModelOnDevice::Compile(const ModelOperator& op) {
  const CDesc desc(op.desc);
  const auto flags = static_cast<DML_EXECUTION_FLAGS>(op.execution_flags);
  CompiledOperator& compiled = operators_.emplace_back();
  if (op.as_graph) {
    return session_->CompileAsGraph(desc.get(), Presence(op.desc.inputs()), Presence(op.desc.outputs()),
                                    flags, Bind(op.owned), &compiled);
  }
  return session_->Compile(desc.get(), flags, Bind(op.owned), &compiled);
}

Status ModelOnDevice::Record(const DispatchCommand& command) {
  return session_->Record(operators_[command.op], Bind(command.inputs), Bind(command.outputs));
}

Status ModelOnDevice::RecordGraph() {
  return session_->Record(operators_[0], BindValues(graph_.inputs, /*owned=*/false),
                          BindValues(graph_.outputs, /*owned=*/false));
}

std::vector<DML_BUFFER_BINDING> ModelOnDevice::BindValues(const std::vector<uint32_t>& values,
                                                          bool owned) const {
  std::vector<ModelBinding> bindings;
  for (const uint32_t number : values) {
    const ModelGraph::Value& value = graph_.values[number];
    ModelBinding& binding = bindings.emplace_back();
    if (value.tensor->owned_by_dml == owned) binding = {value.buffer, value.offset};
  }
  return Bind(bindings);
}

std::vector<DML_BUFFER_BINDING> ModelOnDevice::Bind(const std::vector<ModelBinding>& bindings) const {
  std::vector<DML_BUFFER_BINDING> bound;
  for (const ModelBinding& binding : bindings) {
    DML_BUFFER_BINDING& result = bound.emplace_back();
    if (binding.buffer == ModelBinding::kAbsent) continue;
    result.Buffer = buffers_[binding.buffer].Get();
    result.Offset = binding.offset;
    result.SizeInBytes = result.Buffer->GetDesc().Width - binding.offset;
  }
  return bound;
}

}  // namespace anydml::client
