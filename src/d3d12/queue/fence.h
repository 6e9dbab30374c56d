#pragma once

#include <memory>

#include "d3d12/device/device_child.h"
#include "d3d12/queue/fence_state.h"

namespace anydml::d3d12 {

class Fence final : public DeviceChild<ID3D12Fence1, ID3D12Pageable, ID3D12Fence> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x01}};

  Fence(Device* device, std::shared_ptr<FenceState> state, D3D12_FENCE_FLAGS flags)
      : DeviceChild(device), state_(std::move(state)), flags_(flags) {}

  UINT64 STDMETHODCALLTYPE GetCompletedValue() override;
  HRESULT STDMETHODCALLTYPE SetEventOnCompletion(UINT64 value, HANDLE event) override;
  HRESULT STDMETHODCALLTYPE Signal(UINT64 value) override;
  D3D12_FENCE_FLAGS STDMETHODCALLTYPE GetCreationFlags() override { return flags_; }

  const std::shared_ptr<FenceState>& state() const { return state_; }

 protected:
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  const std::shared_ptr<FenceState> state_;
  const D3D12_FENCE_FLAGS flags_;
};

// Sets `event`, an argument of `method`.
HRESULT SignalEvent(Device* device, const char* method, HANDLE event);

// ID3D12Device1::SetEventOnMultipleFenceCompletion.
HRESULT NotifyOnFences(Device* device, std::span<ID3D12Fence* const> fences, const UINT64* values,
                       D3D12_MULTIPLE_FENCE_WAIT_FLAGS flags, HANDLE event);

}  // namespace anydml::d3d12
