#pragma once

#include <memory>

#include "d3d12/device/device_child.h"

namespace anydml::d3d12 {

class Heap final : public DeviceChild<ID3D12Heap1, ID3D12Pageable, ID3D12Heap> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x02}};

  static HRESULT Create(Device* device, const D3D12_HEAP_DESC* desc, REFIID iid, void** out);

  Heap(Device* device, const D3D12_HEAP_DESC& desc, std::shared_ptr<Memory> memory)
      : DeviceChild(device), desc_(desc), memory_(std::move(memory)) {}

  D3D12_HEAP_DESC STDMETHODCALLTYPE GetDesc() override { return desc_; }
  HRESULT STDMETHODCALLTYPE GetProtectedResourceSession(REFIID, void** out) override {
    if (out != nullptr) *out = nullptr;
    return DXGI_ERROR_NOT_FOUND;
  }

  const D3D12_HEAP_DESC& desc() const { return desc_; }
  // Placed buffers share it and may outlive the heap.
  const std::shared_ptr<Memory>& memory() const { return memory_; }

 protected:
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  const D3D12_HEAP_DESC desc_;
  const std::shared_ptr<Memory> memory_;
};

}  // namespace anydml::d3d12
