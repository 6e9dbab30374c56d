#include "onnx/prepared_run.h"

namespace anydml::onnx {
namespace {

constexpr size_t kAlignment = 64;  // a cache line: kernels choose by the alignment of buffers

}  // namespace

Status PreparedRun::Create(tools::Session* session, const tools::CompiledOperator& op,
                           std::span<const uint64_t> input_bytes, std::span<const uint64_t> output_bytes,
                           std::unique_ptr<PreparedRun>* out) {
  std::unique_ptr<PreparedRun> run(new PreparedRun(session));
  run->inputs_.resize(input_bytes.size());
  run->outputs_.resize(output_bytes.size());
  ANYDML_RETURN_IF_ERROR(session->BeginList(false));
  for (size_t i = 0; i < input_bytes.size(); ++i) {
    if (input_bytes[i] > 0) ANYDML_RETURN_IF_ERROR(run->MakeSlot(input_bytes[i], true, &run->inputs_[i]));
  }
  for (size_t i = 0; i < output_bytes.size(); ++i) {
    ANYDML_RETURN_IF_ERROR(run->MakeSlot(output_bytes[i], false, &run->outputs_[i]));
  }
  ANYDML_RETURN_IF_ERROR(run->Record(op));
  *out = std::move(run);
  return {};
}

Status PreparedRun::MakeSlot(uint64_t bytes, bool upload, Slot* slot) {
  slot->bytes = bytes;
  if (session_.adapter().id == "cpu") {
    slot->own.resize(bytes + kAlignment);
    const auto address = reinterpret_cast<uintptr_t>(slot->own.data());
    slot->memory = slot->own.data() + (kAlignment - address % kAlignment) % kAlignment;
    return session_.Wrap(slot->memory, bytes, &slot->device);
  }
  ANYDML_RETURN_IF_ERROR(session_.Allocate(bytes, &slot->device));
  return session_.AllocateStaging(upload, bytes, &slot->staging, &slot->memory);
}

Status PreparedRun::Record(const tools::CompiledOperator& op) {
  std::vector<DML_BUFFER_BINDING> inputs(inputs_.size()), outputs(outputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].bytes == 0) continue;
    if (inputs_[i].staging) session_.RecordUpload(inputs_[i].device.Get(), inputs_[i].staging.Get());
    inputs[i] = {inputs_[i].device.Get(), 0, inputs_[i].bytes};
  }
  for (size_t i = 0; i < outputs_.size(); ++i) outputs[i] = {outputs_[i].device.Get(), 0, outputs_[i].bytes};
  ANYDML_RETURN_IF_ERROR(session_.Record(op, inputs, outputs));
  session_.RecordBarrier();
  for (const Slot& slot : outputs_) {
    if (slot.staging) session_.RecordReadBack(slot.staging.Get(), slot.device.Get());
  }
  return session_.EndList(&list_);
}

Status PreparedRun::Execute() {
  ANYDML_RETURN_IF_ERROR(session_.Execute(list_));
  return session_.CheckDevices();
}

}  // namespace anydml::onnx
