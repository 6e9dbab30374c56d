#include "onnx/prepared_run.h"

namespace anydml::onnx {
namespace {

constexpr size_t kAlignment = 64;  // a cache line: kernels choose by the alignment of buffers

}  // namespace

Status PreparedRun::Create(tools::Session* session, const CompiledGraphs& graphs,
                           std::span<const uint64_t> input_bytes, size_t outputs,
                           std::unique_ptr<PreparedRun>* out) {
  std::unique_ptr<PreparedRun> run(new PreparedRun(session));
  run->inputs_.resize(input_bytes.size());
  run->outputs_.resize(outputs);
  ANYDML_RETURN_IF_ERROR(session->BeginList(false));
  for (size_t i = 0; i < input_bytes.size(); ++i)
    ANYDML_RETURN_IF_ERROR(run->MakeSlot(input_bytes[i], true, &run->inputs_[i]));
  for (size_t i = 0; i < outputs; ++i)
    ANYDML_RETURN_IF_ERROR(run->MakeSlot(graphs.slot_bytes()[i], false, &run->outputs_[i]));
  ANYDML_RETURN_IF_ERROR(run->Record(graphs));
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

Status PreparedRun::Record(const CompiledGraphs& graphs) {
  std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>> inputs, slots;
  std::vector<uint64_t> input_bytes;
  for (const Slot& slot : inputs_) {
    if (slot.staging) session_.RecordUpload(slot.device.Get(), slot.staging.Get());
    inputs.push_back(slot.device);
    input_bytes.push_back(slot.bytes);
  }
  for (const Slot& slot : outputs_) slots.push_back(slot.device);
  for (size_t i = slots.size(); i < graphs.slot_bytes().size(); ++i)
    ANYDML_RETURN_IF_ERROR(session_.Allocate(graphs.slot_bytes()[i], &slots.emplace_back()));
  ANYDML_RETURN_IF_ERROR(graphs.Record(inputs, input_bytes, slots, &session_));
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
