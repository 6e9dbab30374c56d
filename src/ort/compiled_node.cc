#include "ort/compiled_node.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "ort/device_memory.h"
#include "ort/weights.h"

namespace anydml::ort {
namespace {

constexpr size_t kMostCpuSizes = 64;

std::vector<onnx::Shape> SizesOf(const std::vector<onnx::RuntimeValue>& values) {
  std::vector<onnx::Shape> sizes;
  for (const onnx::RuntimeValue& value : values) sizes.push_back(value.shape);
  return sizes;
}

// Sizes that the model declares between its nodes may be wrong: onnxruntime does not check them there, but it
// does check those of a session's inputs, which these become when its CPU provider runs the group.
onnx::ValueProto WithoutSizes(onnx::ValueProto value) {
  value.has_shape = false;
  value.shape.clear();
  value.symbols.clear();
  return value;
}

// Whether the sizes are the reason, so that they will fail again.
bool DependsOnSizes(const Status& status) {
  return status.code() == Code::kUnsupported || status.code() == Code::kInvalidArgument;
}

}  // namespace

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
    if (value == given.values.end()) continue;  // not used
    model_.graph.inputs.push_back(WithoutSizes(value->second.facts));
    input_positions_.push_back(i);
  }
  for (const std::string& name : outputs) {
    const auto value = given.values.find(name);
    if (value == given.values.end())
      return Status(Code::kFail, StrCat("output \"", name, "\" of a fused node is not in its graph"));
    model_.graph.outputs.push_back(WithoutSizes(value->second.facts));
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

Status CompiledNode::RunOnCpu(const Status& why, std::vector<onnx::RuntimeValue>* inputs,
                              std::vector<onnx::RuntimeValue>* outputs) {
  std::vector<onnx::Tensor> tensors, results;
  for (onnx::RuntimeValue& input : *inputs) {
    ANYDML_RETURN_IF_ERROR(runner_->EnsureHost(&input));
    tensors.push_back(*input.host);
  }
  if (cpu_ == nullptr) ANYDML_RETURN_IF_ERROR(CpuSession::Create(api_, model_, &cpu_));
  if (Status status = cpu_->Run(tensors, &results); !status.ok()) {
    if (cpu_sizes_.empty()) cpu_.reset();  // it has been of no use, and has a copy of the weights
    return status;
  }
  for (onnx::Tensor& result : results) outputs->push_back(onnx::RuntimeValue::Of(std::move(result)));
  if (why.ok()) return {};
  if (DependsOnSizes(why)) cpu_sizes_.push_back(SizesOf(*inputs));
  if (cpu_sizes_.size() > kMostCpuSizes) cpu_sizes_.pop_front();
  const onnx::NodeProto& first = model_.graph.nodes.front();
  api_.Log(device_.logger, kOrtWarning,
           StrCat("AnyDML leaves a group of ", model_.graph.nodes.size(), " nodes (", first.type, " \"",
                  first.name, "\" ...) to onnxruntime's CPU provider for these sizes: ", why.message()));
  return {};
}

Status CompiledNode::Run(OrtKernelContext* context) {
  const std::lock_guard lock(device_.mutex);
  Status status;
  try {
    status = RunGroup(context);
  } catch (const std::bad_alloc&) {
    status = Status(Code::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    status = Status(Code::kFail, error.what());
  }
  // What was recorded names memory that onnxruntime frees after a failure.
  if (!status.ok()) device_.session->Discard();
  return status;
}

Status CompiledNode::RunGroup(OrtKernelContext* context) {
  std::vector<onnx::RuntimeValue> inputs, outputs;
  ANYDML_RETURN_IF_ERROR(ReadInputs(context, &inputs));
  const bool on_cpu = std::find(cpu_sizes_.begin(), cpu_sizes_.end(), SizesOf(inputs)) != cpu_sizes_.end();
  Status status;
  if (!on_cpu) status = runner_->Run(inputs, {}, &outputs);
  if (!status.ok()) device_.session->Discard();  // drops what was recorded until then
  if (on_cpu || (!status.ok() && device_.has_fallback)) {
    outputs.clear();
    const Status theirs = RunOnCpu(status, &inputs, &outputs);
    if (!theirs.ok()) {
      return on_cpu ? theirs
                    : Status(status.code(),
                             StrCat(status.message(), "; onnxruntime's CPU provider: ", theirs.message()));
    }
    status = {};
  }
  for (size_t i = 0; status.ok() && i < outputs.size(); ++i) status = WriteOutput(context, i, &outputs[i]);
  std::string data_error;
  if (status.ok() && device_.has_memory) status = device_.session->Execute(&data_error);
  return status;
}

}  // namespace anydml::ort
