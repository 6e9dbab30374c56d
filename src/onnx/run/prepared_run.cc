#include "onnx/run/prepared_run.h"

#include <algorithm>
#include <new>
#include <utility>

namespace anydml::onnx {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line: kernels choose by the alignment of buffers
// Of the caller's memory; misaligned memory is copied.
constexpr uintptr_t kLeastAlignment = 16;
// Copying this much takes longer than recording a list.
constexpr uint64_t kLarge = 1 << 18;

std::shared_ptr<std::byte> AlignedMemory(uint64_t bytes) {
  return {static_cast<std::byte*>(::operator new(bytes, kAlignment)),
          [](std::byte* memory) { ::operator delete(memory, kAlignment); }};
}

}  // namespace

PreparedRun::PreparedRun(client::Session* session, const CompiledGraphs& graphs, bool timed)
    : session_(*session),
      graphs_(graphs),
      shares_memory_(session->adapter().traits.TakesHostMemory != 0),
      timed_(timed) {}

Status PreparedRun::Create(client::Session* session, const CompiledGraphs& graphs,
                           std::span<const uint64_t> input_bytes, size_t outputs, bool timed,
                           std::unique_ptr<PreparedRun>* out) {
  std::unique_ptr<PreparedRun> run(new PreparedRun(session, graphs, timed));
  for (const uint64_t bytes : input_bytes) {
    run->inputs_.emplace_back().bytes = bytes;
    ANYDML_RETURN_IF_ERROR(run->MakeSlot(true, &run->inputs_.back()));
  }
  const std::span<const uint64_t> slots = graphs.slot_bytes();
  for (const uint64_t bytes : slots.first(outputs)) {
    run->outputs_.emplace_back().bytes = bytes;
    ANYDML_RETURN_IF_ERROR(run->MakeSlot(false, &run->outputs_.back()));
  }
  for (const uint64_t bytes : slots.subspan(outputs))
    ANYDML_RETURN_IF_ERROR(session->Allocate(bytes, &run->between_.emplace_back()));
  *out = std::move(run);
  return {};
}

// Large ones that share memory get it when they are used.
Status PreparedRun::MakeSlot(bool upload, Slot* slot) {
  if (shares_memory_) {
    if (slot->bytes >= kLarge) return {};
    slot->own = AlignedMemory(slot->bytes);
    return Use(slot->own.get(), slot);
  }
  ANYDML_RETURN_IF_ERROR(session_.Allocate(slot->bytes, &slot->device));
  return session_.AllocateStaging(upload, slot->bytes, &slot->staging, &slot->memory);
}

Status PreparedRun::Use(std::byte* memory, Slot* slot) {
  recorded_ = false;
  slot->memory = nullptr;  // without a buffer over it, the next run tries again
  ANYDML_RETURN_IF_ERROR(session_.Wrap(memory, slot->bytes, &slot->device));
  slot->memory = memory;
  return {};
}

Status PreparedRun::SetInput(size_t index, std::span<const std::byte> data) {
  Slot& slot = inputs_[index];
  const bool direct = shares_memory_ && slot.bytes >= kLarge && slot.bytes == data.size() &&
                      reinterpret_cast<uintptr_t>(data.data()) % kLeastAlignment == 0;
  if (direct) {
    slot.own.reset();
    auto* const memory = const_cast<std::byte*>(data.data());  // graphs only read their inputs
    return slot.memory == memory ? Status() : Use(memory, &slot);
  }
  if (shares_memory_ && (!slot.own || slot.memory == nullptr)) {
    slot.own = AlignedMemory(slot.bytes);
    ANYDML_RETURN_IF_ERROR(Use(slot.own.get(), &slot));
  }
  std::copy(data.begin(), data.end(), slot.memory);
  return {};
}

Tensor PreparedRun::TakeOutput(size_t index, ElementType type, const Shape& shape) const {
  const Slot& slot = outputs_[index];
  const std::span<const std::byte> data(slot.memory, PackedBytes(type, shape).value_or(0));
  if (!shares_memory_ || slot.bytes < kLarge)
    return MakeTensor(type, shape, std::vector<std::byte>(data.begin(), data.end()));
  return {type, shape, data, slot.own};
}

Status PreparedRun::Record() {
  ANYDML_RETURN_IF_ERROR(session_.BeginList(false));
  std::vector<Buffer> inputs, slots;
  std::vector<uint64_t> input_bytes;
  for (const Slot& slot : inputs_) {
    if (slot.staging) session_.RecordUpload(slot.device.Get(), slot.staging.Get());
    inputs.push_back(slot.device);
    input_bytes.push_back(slot.bytes);
  }
  for (const Slot& slot : outputs_) slots.push_back(slot.device);
  slots.insert(slots.end(), between_.begin(), between_.end());
  if (timed_) ANYDML_RETURN_IF_ERROR(session_.StartClock());
  ANYDML_RETURN_IF_ERROR(graphs_.Record(inputs, input_bytes, slots, &temporary_, &session_));
  if (timed_) session_.StopClock();
  for (const Slot& slot : outputs_) {
    if (slot.staging) session_.RecordReadBack(slot.staging.Get(), slot.device.Get());
  }
  ANYDML_RETURN_IF_ERROR(session_.EndList(&list_));
  recorded_ = true;
  return {};
}

Status PreparedRun::Execute() {
  for (Slot& slot : outputs_) {
    const bool usable = slot.memory != nullptr && slot.own.use_count() == 1;
    if (!shares_memory_ || slot.bytes < kLarge || usable) continue;
    slot.own = AlignedMemory(slot.bytes);  // the previous run's results are still in use
    ANYDML_RETURN_IF_ERROR(Use(slot.own.get(), &slot));
  }
  if (!recorded_) ANYDML_RETURN_IF_ERROR(Record());
  ANYDML_RETURN_IF_ERROR(session_.Execute(list_));
  return session_.CheckDevices();
}

}  // namespace anydml::onnx
