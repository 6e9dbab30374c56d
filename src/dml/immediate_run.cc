#include "dml/immediate_run.h"

#include <algorithm>
#include <vector>

#include "dml/binding_rules.h"
#include "dml/commands.h"
#include "dml/compiled_operator.h"

namespace anydml::dml {
namespace {

// Keeps the first message.
class CollectedError final : public DataErrorSink {
 public:
  void ReportDataError(const std::string& message) override {
    if (message_.empty()) message_ = message;
  }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

std::byte* Bytes(void* address) { return static_cast<std::byte*>(address); }

// An address per slot, in the layout's order. The vectors are thread-local so that calls allocate rarely.
Status Collect(const Layout& layout, const AnyDmlRunDesc& desc, std::vector<std::byte*>* bound) {
  if (desc.InputCount != layout.input_slots || desc.OutputCount != layout.output_slots) {
    return InvalidArgument(layout.name, " has ", layout.input_slots, " inputs and ", layout.output_slots,
                           " outputs but InputCount is ", desc.InputCount, " and OutputCount ",
                           desc.OutputCount);
  }
  if ((desc.Inputs == nullptr && desc.InputCount != 0) ||
      (desc.Outputs == nullptr && desc.OutputCount != 0)) {
    return InvalidArgument(layout.name, ": Inputs or Outputs is null");
  }
  bound->assign(layout.slots.size(), nullptr);
  std::transform(desc.Inputs, desc.Inputs + desc.InputCount, bound->begin(), Bytes);
  std::transform(desc.Outputs, desc.Outputs + desc.OutputCount, bound->begin() + desc.InputCount, Bytes);
  for (uint32_t i = 0; i < bound->size(); ++i) {
    if (layout.slots[i].need == SlotNeed::kIgnored) (*bound)[i] = nullptr;
  }
  if (layout.temporary_slot >= 0) (*bound)[layout.temporary_slot] = Bytes(desc.Temporary);
  if (layout.persistent_slot >= 0) (*bound)[layout.persistent_slot] = Bytes(desc.Persistent);
  return {};
}

Status Run(const CompiledOperator& op, const AnyDmlRunDesc& desc, DataErrorSink* data_errors) {
  thread_local std::vector<std::byte*> bound;
  thread_local std::vector<Buffer> buffers;
  const Layout& layout = *op.layout();
  const Program& program = *op.program();
  Backend& backend = d3d12::BackendOf(op.state().d3d());
  ANYDML_RETURN_IF_ERROR(Collect(layout, desc, &bound));
  ANYDML_RETURN_IF_ERROR(CheckAddresses(layout, bound, backend.foreign_alignment()));
  if (!op.resident()) return InvalidArgument(layout.name, " is evicted");
  if (!program.initialized.load(std::memory_order_acquire)) {
    return InvalidArgument(layout.name, " has not been initialised");
  }
  buffers.resize(bound.size());
  for (size_t i = 0; i < bound.size(); ++i) {
    buffers[i] = bound[i] != nullptr ? Buffer{bound[i], layout.slots[i].bytes} : Buffer{};
  }
  const auto optional = [](int slot) { return slot < 0 ? Buffer{} : buffers[slot]; };
  const Buffer persistent = optional(layout.persistent_slot);
  for (uint32_t i = 0; i < layout.input_slots; ++i) {
    buffers[i] = InputOf(program.inputs[i], buffers[i], persistent);
  }
  const std::span<const Buffer> all(buffers);
  const KernelArguments arguments = {.inputs = all.first(layout.input_slots),
                                     .outputs = all.subspan(layout.input_slots, layout.output_slots),
                                     .temporary = optional(layout.temporary_slot),
                                     .persistent = KernelPart(program, persistent),
                                     .data_errors = data_errors,
                                     .stream = desc.CudaStream};
  return OfProgram(program, backend.RunNow(*program.lowered.kernel, arguments, desc.Wait != 0));
}

}  // namespace

HRESULT RunImmediately(IDMLCompiledOperator* op, const AnyDmlRunDesc* desc) noexcept {
  constexpr const char* kFunction = "AnyDmlRun";
  return Guard([&]() -> HRESULT {
    const auto* const ours = ImplementationOf<CompiledOperator>(op);
    if (ours == nullptr || desc == nullptr) {
      return Fail(E_INVALIDARG,
                  StrCat(kFunction, ": ", ours == nullptr ? "op is not one of ours" : "desc is null"));
    }
    if (const HRESULT removed = ours->state().CheckRemoved(kFunction); FAILED(removed)) return removed;
    CollectedError data_error;
    const Status status = Run(*ours, *desc, &data_error);
    if (!status.ok()) {
      return Fail(ToHresult(status.code()), StrCat(kFunction, ": ", status.message()));
    }
    return data_error.message().empty() ? S_OK : Fail(S_FALSE, data_error.message());
  });
}

}  // namespace anydml::dml
