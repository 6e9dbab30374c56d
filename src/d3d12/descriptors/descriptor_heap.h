#pragma once

#include "d3d12/descriptors/descriptor_table.h"
#include "d3d12/device/device_child.h"

namespace anydml::d3d12 {

class DescriptorHeap final : public DeviceChild<ID3D12DescriptorHeap, ID3D12Pageable> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x04}};

  static HRESULT Create(Device* device, const D3D12_DESCRIPTOR_HEAP_DESC* desc, REFIID iid, void** out);

  DescriptorHeap(Device* device, const D3D12_DESCRIPTOR_HEAP_DESC& desc);

  D3D12_DESCRIPTOR_HEAP_DESC STDMETHODCALLTYPE GetDesc() override { return desc_; }
  D3D12_CPU_DESCRIPTOR_HANDLE STDMETHODCALLTYPE GetCPUDescriptorHandleForHeapStart() override;
  D3D12_GPU_DESCRIPTOR_HANDLE STDMETHODCALLTYPE GetGPUDescriptorHandleForHeapStart() override;

  const D3D12_DESCRIPTOR_HEAP_DESC& desc() const { return desc_; }
  bool shader_visible() const { return (desc_.Flags & D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE) != 0; }
  DescriptorTable::HeapId id() const { return id_; }

 protected:
  ~DescriptorHeap() override;
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  const D3D12_DESCRIPTOR_HEAP_DESC desc_;
  const DescriptorTable::HeapId id_;
};

}  // namespace anydml::d3d12
