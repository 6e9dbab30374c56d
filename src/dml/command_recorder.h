// IDMLCommandRecorder: stateless; checks that list, dispatchable and table fit together, and records a
// command.
#pragma once

#include "dml/binding_table.h"
#include "dml/device_child.h"

namespace anydml::dml {

class CommandRecorder final : public DeviceChild<IDMLCommandRecorder> {
 public:
  explicit CommandRecorder(Device* device) : DeviceChild(device) {}

  void STDMETHODCALLTYPE RecordDispatch(ID3D12CommandList* list, IDMLDispatchable* dispatchable,
                                        IDMLBindingTable* bindings) override;

 private:
  Status Record(ID3D12CommandList* list, IDMLDispatchable* dispatchable, IDMLBindingTable* bindings) const;
  Status CheckArguments(ID3D12CommandList* list, IDMLDispatchable* dispatchable,
                        const BindingTable* table) const;
};

}  // namespace anydml::dml
