#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "d3d12/device/device_child.h"
#include "d3d12/interop.h"

namespace anydml::d3d12 {

class Resource final : public DeviceChild<ID3D12Resource2, ID3D12Pageable, ID3D12Resource, ID3D12Resource1> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x03}};

  static HRESULT CreateCommitted(Device* device, const D3D12_HEAP_PROPERTIES* properties,
                                 D3D12_HEAP_FLAGS flags, const D3D12_RESOURCE_DESC* desc,
                                 D3D12_RESOURCE_STATES state, const D3D12_CLEAR_VALUE* clear_value,
                                 REFIID iid, void** out);
  static HRESULT CreatePlaced(Device* device, ID3D12Heap* heap, UINT64 offset,
                              const D3D12_RESOURCE_DESC* desc, D3D12_RESOURCE_STATES state,
                              const D3D12_CLEAR_VALUE* clear_value, REFIID iid, void** out);

  // AnyDmlCreateBufferFromMemory.
  static HRESULT CreateOver(Device* device, void* memory, uint64_t bytes, std::function<void()> release,
                            REFIID iid, void** out);

  Resource(Device* device, const D3D12_RESOURCE_DESC& desc, D3D12_HEAP_FLAGS heap_flags,
           std::shared_ptr<ResourceState> state);

  HRESULT STDMETHODCALLTYPE Map(UINT subresource, const D3D12_RANGE* read_range, void** data) override;
  void STDMETHODCALLTYPE Unmap(UINT subresource, const D3D12_RANGE* written_range) override;
  D3D12_RESOURCE_DESC STDMETHODCALLTYPE GetDesc() override { return desc_; }
  D3D12_RESOURCE_DESC1 STDMETHODCALLTYPE GetDesc1() override;
  D3D12_GPU_VIRTUAL_ADDRESS STDMETHODCALLTYPE GetGPUVirtualAddress() override;
  HRESULT STDMETHODCALLTYPE WriteToSubresource(UINT, const D3D12_BOX*, const void*, UINT, UINT) override;
  HRESULT STDMETHODCALLTYPE ReadFromSubresource(void*, UINT, UINT, UINT, const D3D12_BOX*) override;
  HRESULT STDMETHODCALLTYPE GetHeapProperties(D3D12_HEAP_PROPERTIES* properties,
                                              D3D12_HEAP_FLAGS* flags) override;
  HRESULT STDMETHODCALLTYPE GetProtectedResourceSession(REFIID iid, void** out) override;

  const std::shared_ptr<ResourceState>& state() const { return state_; }
  const D3D12_RESOURCE_DESC& desc() const { return desc_; }

 protected:
  ~Resource() override;
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  HRESULT CheckRange(const char* method, const D3D12_RANGE* range) const;

  const D3D12_RESOURCE_DESC desc_;
  const D3D12_HEAP_FLAGS heap_flags_;
  const std::shared_ptr<ResourceState> state_;
  std::atomic<int32_t> map_count_{0};
};

}  // namespace anydml::d3d12
