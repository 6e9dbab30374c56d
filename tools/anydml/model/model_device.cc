#include "anydml/model/model_device.h"

#include "common/c_desc.h"

namespace anydml::tools {
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

Status ModelOnDevice::Prepare() {
  for (ModelBuffer& buffer : model_.buffers) {
    ANYDML_RETURN_IF_ERROR(session_->Upload(buffer.bytes, &buffers_.emplace_back()));
    buffer.bytes = std::vector<std::byte>();
  }
  for (const ModelOperator& op : model_.operators) ANYDML_RETURN_IF_ERROR(At(op.where, Compile(op)));
  return {};
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

}  // namespace anydml::tools
