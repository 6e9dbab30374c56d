// IDMLBindingTable: checks bindings, writes them into descriptors, and stores them for the snapshot that
// RecordDispatch takes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "d3d12/interop.h"
#include "dml/device_child.h"
#include "dml/dispatchable.h"

namespace anydml::dml {

// What a table wraps; empty for a null description.
struct TableTarget {
  ComPtr<IDMLDispatchable> dispatchable;
  std::shared_ptr<const Layout> layout;  // the dispatchable's at the time when the table was made
  D3D12_CPU_DESCRIPTOR_HANDLE cpu{};
  D3D12_GPU_DESCRIPTOR_HANDLE gpu{};
};

Status CheckTableDesc(const char* method, const Device* device, const DML_BINDING_TABLE_DESC* desc,
                      TableTarget* target);

class BindingTable final : public DeviceChild<IDMLBindingTable> {
 public:
  static constexpr GUID kImplementationIid = {
      0x5f0c1a52, 0x7c1d, 0x4c11, {0x9a, 0x60, 0x3e, 0x52, 0x0d, 0x7b, 0x11, 0x04}};

  BindingTable(Device* device, TableTarget target);

  void STDMETHODCALLTYPE BindInputs(UINT count, const DML_BINDING_DESC* bindings) override;
  void STDMETHODCALLTYPE BindOutputs(UINT count, const DML_BINDING_DESC* bindings) override;
  void STDMETHODCALLTYPE BindTemporaryResource(const DML_BINDING_DESC* binding) override;
  void STDMETHODCALLTYPE BindPersistentResource(const DML_BINDING_DESC* binding) override;
  HRESULT STDMETHODCALLTYPE Reset(const DML_BINDING_TABLE_DESC* desc) override;

  const TableTarget& target() const { return target_; }

  // One per slot; fails if a buffer was destroyed since it was bound.
  Status Snapshot(std::vector<d3d12::Descriptor>* bound) const;

 protected:
  void* QueryOther(REFIID iid) override { return iid == kImplementationIid ? this : nullptr; }

 private:
  // The references are weak: a table keeps no buffer alive.
  struct Binding {
    bool bound = false;
    std::weak_ptr<d3d12::ResourceState> resource;
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  void SetTarget(TableTarget target);
  Status Bind(const char* method, bool outputs, UINT count, const DML_BINDING_DESC* bindings);
  Status BindInitializerInputs(UINT count, const DML_BINDING_DESC* bindings,
                               std::vector<d3d12::Descriptor>* checked) const;
  Status BindSingle(const char* method, SlotRole role, int slot, const DML_BINDING_DESC* binding);
  // Stores nothing unless every binding of the call is valid.
  Status Store(const char* method, uint32_t first_slot, std::span<const d3d12::Descriptor> checked);

  TableTarget target_;
  std::vector<Binding> bindings_;  // one per slot
};

}  // namespace anydml::dml
