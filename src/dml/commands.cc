#include "dml/commands.h"

#include <algorithm>
#include <utility>

#include "dml/binding_rules.h"
#include "kernel/work_estimate.h"

namespace anydml::dml {
namespace {

Buffer BufferOf(const Slot& slot, const d3d12::Descriptor& descriptor) {
  if (descriptor.resource == nullptr) return {};
  // The size is the tensor's, not the binding's: nothing beyond it may be written.
  return {descriptor.resource->device_data() + descriptor.offset, slot.bytes};
}

std::vector<std::shared_ptr<d3d12::ResourceState>> ResourcesOf(std::span<const d3d12::Descriptor> bound) {
  std::vector<std::shared_ptr<d3d12::ResourceState>> resources;
  for (const d3d12::Descriptor& descriptor : bound) {
    if (descriptor.resource != nullptr) resources.push_back(descriptor.resource);
  }
  return resources;
}

Buffer OptionalBuffer(const Layout& layout, int slot, std::span<const d3d12::Descriptor> bound) {
  return slot < 0 ? Buffer{} : BufferOf(layout.slots[slot], bound[slot]);
}

}  // namespace

Buffer KernelPart(const Program& program, const Buffer& persistent) {
  if (program.kernel_persistent_bytes == 0) return {};
  return {persistent.data, program.kernel_persistent_bytes};
}

Buffer InputOf(const TensorSlot& input, const Buffer& bound, const Buffer& persistent) {
  if (input.packed) return {};
  return input.owned ? Buffer{persistent.data + input.persistent_offset, input.bytes} : bound;
}

Status OfProgram(const Program& program, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(),
                StrCat(program.name, " (", program.lowered.implementation, "): ", status.message()));
}

DispatchCommand::DispatchCommand(std::shared_ptr<DeviceState> state, const Layout& layout,
                                 std::span<const d3d12::Descriptor> bound)
    : state_(std::move(state)), program_(layout.programs[0]) {
  resources_ = ResourcesOf(bound);
  const Buffer persistent = OptionalBuffer(layout, layout.persistent_slot, bound);
  persistent_ = KernelPart(*program_, persistent);
  for (uint32_t i = 0; i < layout.input_slots; ++i) {
    inputs_.push_back(InputOf(program_->inputs[i], BufferOf(layout.slots[i], bound[i]), persistent));
  }
  for (uint32_t i = layout.input_slots; i < layout.input_slots + layout.output_slots; ++i) {
    outputs_.push_back(BufferOf(layout.slots[i], bound[i]));
  }
  temporary_ = OptionalBuffer(layout, layout.temporary_slot, bound);
}

Status DispatchCommand::Execute(Stream& stream) const {
  if (!program_->initialized.load(std::memory_order_acquire)) {
    // Misuse of DirectML removes the DirectML device and does not affect the Direct3D device.
    state_->Remove(
        Status(Code::kInvalidCall, StrCat("IDMLCommandRecorder::RecordDispatch: ", program_->name,
                                          " was executed before it was initialised; nothing was written")));
    return {};
  }
  const KernelArguments arguments = {.inputs = inputs_,
                                     .outputs = outputs_,
                                     .temporary = temporary_,
                                     .persistent = persistent_,
                                     .data_errors = state_->data_error_sink()};
  return OfProgram(*program_, stream.Run(*program_->lowered.kernel, arguments));
}

// Also unknown while errors in data are reported, because that is done on the queue's thread.
uint64_t DispatchCommand::work_bytes() const {
  return repeatable() ? program_->work_bytes : WorkEstimate::kUnknown;
}

bool DispatchCommand::IsSame(const d3d12::Command& command) const {
  const auto* const other = dynamic_cast<const DispatchCommand*>(&command);
  if (other == nullptr || other->program_ != program_) return false;
  const auto same = [](const Buffer& a, const Buffer& b) { return a.data == b.data && a.size == b.size; };
  return std::equal(inputs_.begin(), inputs_.end(), other->inputs_.begin(), other->inputs_.end(), same) &&
         std::equal(outputs_.begin(), outputs_.end(), other->outputs_.begin(), other->outputs_.end(), same) &&
         same(temporary_, other->temporary_) && same(persistent_, other->persistent_);
}

VolatileDispatchCommand::VolatileDispatchCommand(std::shared_ptr<DeviceState> state,
                                                 std::shared_ptr<const Layout> layout,
                                                 D3D12_GPU_DESCRIPTOR_HANDLE descriptors)
    : state_(std::move(state)), layout_(std::move(layout)), descriptors_(descriptors) {}

Status VolatileDispatchCommand::Resolve(std::shared_ptr<const d3d12::Command>* instead) const {
  std::vector<d3d12::Descriptor> bound;
  const Status status = ReadBindings(&bound);
  if (status.ok()) {
    *instead = std::make_shared<DispatchCommand>(state_, *layout_, bound);
  } else {
    state_->Remove(
        Status(status.code(), StrCat("ID3D12CommandQueue::ExecuteCommandLists: ", status.message())));
  }
  return {};
}

Status VolatileDispatchCommand::ReadBindings(std::vector<d3d12::Descriptor>* bound) const {
  bound->resize(layout_->slots.size());
  if (!d3d12::ReadDescriptors(state_->d3d(), descriptors_, *bound)) {
    return Status(Code::kInvalidCall, StrCat("the descriptor heap of ", layout_->name, " was destroyed"));
  }
  for (size_t i = 0; i < bound->size(); ++i) {
    const Slot& slot = layout_->slots[i];
    // A slot that needs no binding may still hold an old descriptor of the heap.
    if (slot.need != SlotNeed::kRequired) (*bound)[i] = {};
    if ((*bound)[i].resource != nullptr) ANYDML_RETURN_IF_ERROR(CheckRegion(slot, (*bound)[i]));
  }
  return CheckTogether(*layout_, *bound);
}

// Runs only if Resolve refused the bindings; the device is removed by then.
Status VolatileDispatchCommand::Execute(Stream&) const { return {}; }

InitializeCommand::InitializeCommand(std::shared_ptr<DeviceState> state, std::shared_ptr<const Layout> layout,
                                     std::span<const d3d12::Descriptor> bound)
    : state_(std::move(state)), layout_(std::move(layout)) {
  resources_ = ResourcesOf(bound);
  size_t input_slot = 0;
  size_t output_slot = layout_->input_slots;
  for (const auto& program : layout_->programs) {
    const Buffer persistent = BufferOf(layout_->slots[output_slot], bound[output_slot]);
    ProgramStep step = {program.get(), {}, {}, {}, KernelPart(*program, persistent)};
    for (const TensorSlot& input : program->inputs) {
      step.inputs.push_back(BufferOf(layout_->slots[input_slot], bound[input_slot]));
      if (input.owned && !input.packed) {
        step.copies.push_back(
            {persistent.data + input.persistent_offset, step.inputs.back().data, input.bytes});
      }
      ++input_slot;
    }
    step.outputs.resize(program->outputs.size());
    ++output_slot;
    steps_.push_back(std::move(step));
  }
  temporary_ = OptionalBuffer(*layout_, layout_->temporary_slot, bound);
}

Status InitializeCommand::Execute(Stream& stream) const {
  for (const ProgramStep& step : steps_) {
    // The exchange decides, even if the initialisation was recorded several times or on several queues.
    if (step.program->initialized.exchange(true, std::memory_order_acq_rel)) {
      state_->Remove(
          Status(Code::kInvalidCall,
                 StrCat("IDMLCommandRecorder::RecordDispatch: ", step.program->name,
                        " was initialised twice; each compiled operator is initialised exactly once")));
      return {};
    }
    ANYDML_RETURN_IF_ERROR(ExecuteStep(step, stream));
  }
  return {};
}

Status InitializeCommand::ExecuteStep(const ProgramStep& step, Stream& stream) const {
  for (const CopyStep& copy : step.copies) {
    ANYDML_RETURN_IF_ERROR(stream.Copy(copy.target, copy.source, copy.bytes));
  }
  if (step.persistent.data == nullptr) return {};
  for (const Kernel::PersistentData& data : step.program->lowered.kernel->persistent_data()) {
    ANYDML_RETURN_IF_ERROR(
        stream.Copy(step.persistent.data + data.offset, data.bytes.data(), data.bytes.size()));
  }
  const KernelArguments arguments = {
      .inputs = step.inputs, .outputs = step.outputs, .temporary = temporary_, .persistent = step.persistent};
  return OfProgram(*step.program, stream.Initialize(*step.program->lowered.kernel, arguments));
}

}  // namespace anydml::dml
