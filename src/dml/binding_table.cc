#include "dml/binding_table.h"

#include <utility>

#include "dml/binding_rules.h"
#include "dml/raw_enum.h"

namespace anydml::dml {
namespace {

Status Prefixed(const char* method, const std::string& where, const Status& status) {
  if (status.ok()) return {};
  return Status(status.code(), StrCat(method, ": ", where, status.message()));
}

std::string Plural(uint64_t count, const char* noun) {
  return StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// The only buffer of a binding of type NONE or BUFFER.
Status ReadSingle(const DML_BINDING_DESC& binding, DML_BUFFER_BINDING* out) {
  *out = {};
  const uint32_t type = RawEnum(binding.Type);
  if (type == DML_BINDING_TYPE_NONE) return {};
  if (type != DML_BINDING_TYPE_BUFFER) {
    return InvalidArgument("Type is ", type, " but must be DML_BINDING_TYPE_BUFFER or DML_BINDING_TYPE_NONE");
  }
  if (binding.Desc == nullptr) return InvalidArgument("Type is DML_BINDING_TYPE_BUFFER but Desc is null");
  *out = *static_cast<const DML_BUFFER_BINDING*>(binding.Desc);
  return {};
}

// One operator's buffers among an initializer's inputs; empty if none is bound.
Status ReadArray(const DML_BINDING_DESC& binding, size_t expected, std::span<const DML_BUFFER_BINDING>* out) {
  *out = {};
  if (RawEnum(binding.Type) != DML_BINDING_TYPE_BUFFER_ARRAY) {
    DML_BUFFER_BINDING single;
    if (ReadSingle(binding, &single).ok() && single.Buffer == nullptr) return {};
    return InvalidArgument("Type is ", RawEnum(binding.Type), " but an initializer takes ",
                           "DML_BINDING_TYPE_BUFFER_ARRAY or DML_BINDING_TYPE_NONE");
  }
  if (binding.Desc == nullptr)
    return InvalidArgument("Type is DML_BINDING_TYPE_BUFFER_ARRAY but Desc is null");
  const auto& array = *static_cast<const DML_BUFFER_ARRAY_BINDING*>(binding.Desc);
  if (array.BindingCount == 0) return {};
  if (array.BindingCount != expected) {
    return InvalidArgument("BindingCount is ", array.BindingCount, " but the operator has ",
                           Plural(expected, "input"));
  }
  if (array.Bindings == nullptr)
    return InvalidArgument("BindingCount is ", expected, " but Bindings is null");
  *out = {array.Bindings, array.BindingCount};
  return {};
}

}  // namespace

Status CheckTableDesc(const char* method, const Device* device, const DML_BINDING_TABLE_DESC* desc,
                      TableTarget* target) {
  *target = {};
  if (desc == nullptr) return {};
  if (desc->Dispatchable == nullptr) return InvalidArgument(method, ": Dispatchable is null");
  const auto* dispatchable = ImplementationOf<Dispatchable>(desc->Dispatchable);
  if (dispatchable == nullptr || dispatchable->owner() != device) {
    return InvalidArgument(method, ": Dispatchable belongs to another device");
  }
  auto layout = dispatchable->layout();
  const UINT required = layout->properties().RequiredDescriptorCount;
  if (desc->SizeInDescriptors < required) {
    return InvalidArgument(method, ": SizeInDescriptors is ", desc->SizeInDescriptors, " but ", layout->name,
                           " requires ", required);
  }
  if (!d3d12::DescriptorRangeValid(device->state().d3d(), desc->CPUDescriptorHandle,
                                   desc->GPUDescriptorHandle, desc->SizeInDescriptors)) {
    return InvalidArgument(
        method, ": the ", Plural(desc->SizeInDescriptors, "descriptor"),
        " do not lie in live CBV_SRV_UAV heaps of the device, the GPU handle's shader visible");
  }
  target->dispatchable = desc->Dispatchable;
  target->layout = std::move(layout);
  target->cpu = desc->CPUDescriptorHandle;
  target->gpu = desc->GPUDescriptorHandle;
  return {};
}

BindingTable::BindingTable(Device* device, TableTarget target) : DeviceChild(device) {
  SetTarget(std::move(target));
}

void BindingTable::SetTarget(TableTarget target) {
  std::vector<Binding> bindings(target.layout ? target.layout->slots.size() : 0);
  target_ = std::move(target);
  bindings_ = std::move(bindings);
}

HRESULT BindingTable::Reset(const DML_BINDING_TABLE_DESC* desc) {
  constexpr char kMethod[] = "IDMLBindingTable::Reset";
  const HRESULT removed = state().CheckRemoved(kMethod);
  if (FAILED(removed)) return removed;
  return Guard([&]() -> HRESULT {
    TableTarget target;
    const Status status = CheckTableDesc(kMethod, device(), desc, &target);
    if (!status.ok()) return device()->Fail(status);
    SetTarget(std::move(target));
    return S_OK;
  });
}

void BindingTable::BindInputs(UINT count, const DML_BINDING_DESC* bindings) {
  GuardVoid(state(), [&] { return Bind("IDMLBindingTable::BindInputs", false, count, bindings); });
}

void BindingTable::BindOutputs(UINT count, const DML_BINDING_DESC* bindings) {
  GuardVoid(state(), [&] { return Bind("IDMLBindingTable::BindOutputs", true, count, bindings); });
}

void BindingTable::BindTemporaryResource(const DML_BINDING_DESC* binding) {
  GuardVoid(state(), [&] {
    const int slot = target_.layout ? target_.layout->temporary_slot : -1;
    return BindSingle("IDMLBindingTable::BindTemporaryResource", SlotRole::kTemporary, slot, binding);
  });
}

void BindingTable::BindPersistentResource(const DML_BINDING_DESC* binding) {
  GuardVoid(state(), [&] {
    const int slot = target_.layout ? target_.layout->persistent_slot : -1;
    return BindSingle("IDMLBindingTable::BindPersistentResource", SlotRole::kPersistent, slot, binding);
  });
}

Status BindingTable::Bind(const char* method, bool outputs, UINT count, const DML_BINDING_DESC* bindings) {
  if (count != 0 && bindings == nullptr) {
    return InvalidArgument(method, ": bindingCount is ", count, " but bindings is null");
  }
  if (target_.layout == nullptr) {
    return count == 0 ? Status() : InvalidArgument(method, ": the table has no dispatchable");
  }
  const Layout& layout = *target_.layout;
  const uint32_t first = outputs ? layout.input_slots : 0;
  std::vector<d3d12::Descriptor> checked(outputs ? layout.output_slots : layout.input_slots);
  if (count == 0) return Store(method, first, checked);  // unbinds all
  const bool arrays = layout.initializer && !outputs;
  const size_t expected = arrays ? layout.programs.size() : checked.size();
  if (count != expected) {
    const char* noun = arrays ? "operator" : outputs ? "output" : "input";
    return InvalidArgument(method, ": bindingCount is ", count, " but ", layout.name, " has ",
                           Plural(expected, noun));
  }
  if (arrays) {
    ANYDML_RETURN_IF_ERROR(Prefixed(method, "", BindInitializerInputs(count, bindings, &checked)));
    return Store(method, first, checked);
  }
  for (UINT i = 0; i < count; ++i) {
    DML_BUFFER_BINDING buffer;
    const std::string where = StrCat("bindings[", i, "]: ");
    const Slot& slot = layout.slots[first + i];
    ANYDML_RETURN_IF_ERROR(Prefixed(method, where, ReadSingle(bindings[i], &buffer)));
    ANYDML_RETURN_IF_ERROR(Prefixed(method, where, CheckBuffer(state().d3d(), slot, buffer, &checked[i])));
    if (slot.need == SlotNeed::kIgnored && buffer.Buffer != nullptr) {
      state().Warn(StrCat(method, ": ", where, slot.name, ": a buffer is bound but there is no edge"));
    }
  }
  return Store(method, first, checked);
}

Status BindingTable::BindInitializerInputs(UINT count, const DML_BINDING_DESC* bindings,
                                           std::vector<d3d12::Descriptor>* checked) const {
  const Layout& layout = *target_.layout;
  size_t first = 0;  // slot of this operator's first input
  for (UINT i = 0; i < count; ++i) {
    const size_t inputs = layout.programs[i]->inputs.size();
    std::span<const DML_BUFFER_BINDING> buffers;
    const Status read = ReadArray(bindings[i], inputs, &buffers);
    if (!read.ok()) return Status(read.code(), StrCat("bindings[", i, "]: ", read.message()));
    for (size_t j = 0; j < buffers.size(); ++j) {
      const Slot& slot = layout.slots[first + j];
      const Status check = CheckBuffer(state().d3d(), slot, buffers[j], &(*checked)[first + j]);
      if (!check.ok()) {
        return Status(check.code(), StrCat("bindings[", i, "].Bindings[", j, "]: ", check.message()));
      }
    }
    first += inputs;
  }
  return {};
}

Status BindingTable::BindSingle(const char* method, SlotRole role, int slot,
                                const DML_BINDING_DESC* binding) {
  DML_BUFFER_BINDING buffer = {};
  if (binding != nullptr) ANYDML_RETURN_IF_ERROR(Prefixed(method, "", ReadSingle(*binding, &buffer)));
  d3d12::Descriptor checked;
  if (slot >= 0) {
    const Slot& wanted = target_.layout->slots[slot];
    ANYDML_RETURN_IF_ERROR(Prefixed(method, "", CheckBuffer(state().d3d(), wanted, buffer, &checked)));
    return Store(method, static_cast<uint32_t>(slot), {&checked, 1});
  }
  // Clients that share one buffer between dispatchables also bind it where none is needed. That is harmless,
  // so it is checked like any other binding and not stored.
  const Slot unneeded = {role, SlotNeed::kUnneeded, "binding", 0, DML_TEMPORARY_BUFFER_ALIGNMENT, false};
  return Prefixed(method, "", CheckBuffer(state().d3d(), unneeded, buffer, &checked));
}

Status BindingTable::Store(const char* method, uint32_t first_slot,
                           std::span<const d3d12::Descriptor> checked) {
  if (checked.empty()) return {};
  D3D12_CPU_DESCRIPTOR_HANDLE handle = target_.cpu;
  handle.ptr += static_cast<SIZE_T>(first_slot) * device()->descriptor_increment();
  if (!d3d12::WriteDescriptors(state().d3d(), handle, checked)) {
    return Status(Code::kInvalidCall, StrCat(method, ": the descriptor heap of the table was destroyed"));
  }
  for (size_t i = 0; i < checked.size(); ++i) {
    bindings_[first_slot + i] = {checked[i].resource != nullptr, checked[i].resource, checked[i].offset,
                                 checked[i].size};
  }
  return {};
}

Status BindingTable::Snapshot(std::vector<d3d12::Descriptor>* bound) const {
  bound->resize(bindings_.size());
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const Binding& binding = bindings_[i];
    if (!binding.bound) continue;
    (*bound)[i] = {binding.resource.lock(), binding.offset, binding.size};
    if ((*bound)[i].resource == nullptr) {
      return Status(Code::kInvalidCall,
                    StrCat(target_.layout->slots[i].name, ": the bound buffer was destroyed"));
    }
  }
  return {};
}

}  // namespace anydml::dml
