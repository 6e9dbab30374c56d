#include "ort/compiled_node.h"

#include <algorithm>
#include <cstring>

#include "ort/device_memory.h"
#include "ort/weights.h"

namespace anydml::ort {

CompiledNode::CompiledNode(const Api& api, Device* device) : api_(api), device_(*device) {
  create_state = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = self;
    return nullptr;
  };
  compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) -> OrtStatus* {
    auto* const node = static_cast<CompiledNode*>(self);
    return Guarded(node->api_, [&] { return node->Run(context); });
  };
  release_state = [](OrtNodeComputeInfo*, void*) {};
}

Status CompiledNode::Create(const Api& api, const OrtGraph* graph, const OrtNode* fused, Device* device,
                            std::unique_ptr<CompiledNode>* out) {
  std::unique_ptr<CompiledNode> node(new CompiledNode(api, device));
  ANYDML_RETURN_IF_ERROR(node->TakeModel(graph, fused));
  ANYDML_RETURN_IF_ERROR(onnx::Program::Create(node->model_, &node->program_));
  node->runner_ =
      std::make_unique<onnx::ProgramRunner>(*node->program_, device->session.get(), device->flags);
  *out = std::move(node);
  return {};
}

Status CompiledNode::TakeModel(const OrtGraph* graph, const OrtNode* fused) {
  Graph given;
  ANYDML_RETURN_IF_ERROR(ReadGraph(api_, graph, &given));
  std::vector<std::string> inputs, outputs;
  ANYDML_RETURN_IF_ERROR(ReadNames(api_, fused, &inputs, &outputs));
  model_.ir_version = given.ir_version;
  model_.opsets = std::move(given.opsets);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto value = given.values.find(inputs[i]);
    if (value == given.values.end()) continue;  // nobody reads it
    model_.graph.inputs.push_back(value->second.facts);
    input_positions_.push_back(i);
  }
  for (const std::string& name : outputs) {
    const auto value = given.values.find(name);
    if (value == given.values.end())
      return Status(Code::kFail, StrCat("output \"", name, "\" of a fused node is not in its graph"));
    model_.graph.outputs.push_back(value->second.facts);
  }
  Weights weights(api_, graph);
  for (const auto& [name, value] : given.values) {
    if (!value.constant || std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
    ANYDML_RETURN_IF_ERROR(weights.Take(value, &model_.graph.initializers[name]));
  }
  for (GraphNode& node : given.nodes) model_.graph.nodes.push_back(std::move(node.proto));
  return {};
}

Status CompiledNode::ReadInputs(const OrtKernelContext* context, std::vector<onnx::RuntimeValue>* out) {
  for (const size_t position : input_positions_) {
    const OrtValue* value = nullptr;
    ANYDML_RETURN_IF_ERROR(api_.Try(kKernelContextGetInput, context, position, &value));
    onnx::Tensor tensor;
    ANYDML_RETURN_IF_ERROR(api_.TensorOf(value, &tensor));
    void* const memory = const_cast<std::byte*>(tensor.data.data());
    const size_t bytes = tensor.data.size();
    out->push_back(onnx::RuntimeValue::Of(std::move(tensor)));
    if (bytes == 0 || !IsOnDevice(value)) continue;
    out->back().host.reset();
    ANYDML_RETURN_IF_ERROR(device_.session->Wrap(memory, bytes, &out->back().device));
  }
  return {};
}

bool CompiledNode::IsOnDevice(const OrtValue* value) const {
  return api_.Call(kMemoryDeviceGetDeviceType, api_.Call(kValueGetMemoryDevice, value)) == kOrtGpuMemory;
}

Status CompiledNode::WriteOutput(OrtKernelContext* context, size_t index, onnx::RuntimeValue* value) {
  if (value->kind != onnx::RuntimeValue::Kind::kTensor)
    return Status(Code::kFail, StrCat("output \"", model_.graph.outputs[index].name, "\" is no tensor"));
  const int64_t none = 0;
  OrtValue* output = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kKernelContextGetOutput, context, index,
                                  value->shape.empty() ? &none : value->shape.data(), value->shape.size(),
                                  &output));
  if (onnx::ElementCount(value->shape) == 0) return {};
  void* memory = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kGetTensorMutableData, output, &memory));
  if (IsOnDevice(output)) return WriteToDevice(value, memory);
  ANYDML_RETURN_IF_ERROR(runner_->EnsureHost(value));
  std::memcpy(memory, value->host->data.data(), value->host->data.size());
  return {};
}

Status CompiledNode::WriteToDevice(onnx::RuntimeValue* value, void* memory) {
  if (value->device) {
    const uint64_t bytes = onnx::PackedBytes(value->type, value->shape).value_or(0);
    return RecordCopyTo(device_.session.get(), value->device.Get(), bytes, memory);
  }
  return RecordUploadTo(device_.session.get(), value->host->data, memory);
}

Status CompiledNode::Run(OrtKernelContext* context) {
  const std::lock_guard lock(device_.mutex);
  std::vector<onnx::RuntimeValue> inputs, outputs;
  Status status = ReadInputs(context, &inputs);
  if (status.ok()) status = runner_->Run(std::move(inputs), {}, &outputs);
  for (size_t i = 0; status.ok() && i < outputs.size(); ++i) status = WriteOutput(context, i, &outputs[i]);
  std::string data_error;
  if (status.ok() && device_.has_memory) status = device_.session->Execute(&data_error);
  if (!status.ok()) device_.session->Discard();  // what was recorded until then
  return status;
}

}  // namespace anydml::ort
