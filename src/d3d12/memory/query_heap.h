#pragma once

#include <memory>

#include "d3d12/device/device_child.h"
#include "d3d12/interop.h"

namespace anydml::d3d12 {

// Timestamps. They are in a buffer of their own, so that the rules for buffers in flight apply to them, too.
class QueryHeap final : public DeviceChild<ID3D12QueryHeap, ID3D12Pageable> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x05}};

  static HRESULT Create(Device* device, const D3D12_QUERY_HEAP_DESC* desc, REFIID iid, void** out);

  QueryHeap(Device* device, const D3D12_QUERY_HEAP_DESC& desc, std::shared_ptr<ResourceState> state)
      : DeviceChild(device), desc_(desc), state_(std::move(state)) {}

  uint32_t count() const { return desc_.Count; }
  const std::shared_ptr<ResourceState>& state() const { return state_; }

 protected:
  ~QueryHeap() override;
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  const D3D12_QUERY_HEAP_DESC desc_;
  const std::shared_ptr<ResourceState> state_;
};

}  // namespace anydml::d3d12
