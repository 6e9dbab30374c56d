#include "dml/command_recorder.h"

#include <utility>

#include "dml/binding_rules.h"
#include "dml/commands.h"

namespace anydml::dml {
namespace {

// Execution makes the definitive check; this one reports the error as early as possible.
Status CheckNotInitialized(const Layout& layout) {
  for (const auto& program : layout.programs) {
    if (program->initialized.load(std::memory_order_acquire)) {
      return Status(Code::kInvalidCall, StrCat(program->name, " is initialised already; each compiled ",
                                               "operator is initialised exactly once"));
    }
  }
  return {};
}

}  // namespace

void CommandRecorder::RecordDispatch(ID3D12CommandList* list, IDMLDispatchable* dispatchable,
                                     IDMLBindingTable* bindings) {
  GuardVoid(state(), [&]() -> Status {
    const Status status = Record(list, dispatchable, bindings);
    if (status.ok()) return {};
    return Status(status.code(), StrCat("IDMLCommandRecorder::RecordDispatch: ", status.message()));
  });
}

Status CommandRecorder::CheckArguments(ID3D12CommandList* list, IDMLDispatchable* dispatchable,
                                       const BindingTable* table) const {
  if (!d3d12::IsDeviceOf(state().d3d(), list)) {
    return InvalidArgument("commandList belongs to another Direct3D device");
  }
  const auto* target = ImplementationOf<Dispatchable>(dispatchable);
  if (target == nullptr || target->owner() != device()) {
    return InvalidArgument("dispatchable belongs to another device");
  }
  if (table == nullptr || table->device() != device()) {
    return InvalidArgument("bindings belongs to another device");
  }
  if (table->target().layout == nullptr) return InvalidArgument("bindings is a table without dispatchable");
  if (ImplementationOf<Dispatchable>(table->target().dispatchable.get()) != target) {
    return InvalidArgument("bindings was made for another dispatchable (", table->target().layout->name,
                           "), not for this ", target->layout()->name);
  }
  if (table->target().layout != target->layout()) {
    return Status(Code::kInvalidCall, "the initializer was Reset after bindings was made for it");
  }
  if (!target->resident()) {
    return Status(Code::kInvalidCall, StrCat(target->layout()->name, " is evicted"));
  }
  return {};
}

Status CommandRecorder::Record(ID3D12CommandList* list, IDMLDispatchable* dispatchable,
                               IDMLBindingTable* bindings) const {
  if (list == nullptr) return InvalidArgument("commandList is null");
  if (dispatchable == nullptr) return InvalidArgument("dispatchable is null");
  if (bindings == nullptr) return InvalidArgument("bindings is null");
  const auto* table = ImplementationOf<BindingTable>(bindings);
  ANYDML_RETURN_IF_ERROR(CheckArguments(list, dispatchable, table));

  const TableTarget& target = table->target();
  const Layout& layout = *target.layout;
  std::shared_ptr<const d3d12::Command> command;
  if (!layout.initializer && layout.programs[0]->volatile_descriptors) {
    command = std::make_shared<VolatileDispatchCommand>(shared_state(), target.layout, target.gpu);
  } else {
    std::vector<d3d12::Descriptor> bound;
    ANYDML_RETURN_IF_ERROR(table->Snapshot(&bound));
    ANYDML_RETURN_IF_ERROR(CheckTogether(layout, bound));
    if (layout.initializer) {
      ANYDML_RETURN_IF_ERROR(CheckNotInitialized(layout));
      command = std::make_shared<InitializeCommand>(shared_state(), target.layout, bound);
    } else {
      command = std::make_shared<DispatchCommand>(shared_state(), layout, bound);
    }
  }
  return d3d12::RecordCommand(list, std::move(command), target.gpu);
}

}  // namespace anydml::dml
