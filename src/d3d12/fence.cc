#include "d3d12/fence.h"

#include <vector>

#include "com/guard.h"
#include "d3d12/implementation_of.h"

namespace anydml::d3d12 {

HRESULT Fence::SetEventOnCompletion(UINT64 value, HANDLE event) {
  return Guard([&] {
    if (event == nullptr) {
      state_->Wait(value);
      return S_OK;
    }
    const int fd = DuplicateEvent(event);
    if (fd < 0) {
      return device()->Fail(
          E_HANDLE, "ID3D12Fence::SetEventOnCompletion: hEvent is not an event (an eventfd is needed)");
    }
    state_->Notify(value, std::make_shared<Notification>(1, fd));
    return S_OK;
  });
}

HRESULT Fence::Signal(UINT64 value) {
  return Guard([&] {
    if (device()->removed()) return device()->FailRemoved("ID3D12Fence::Signal");
    state_->Signal(value);
    return S_OK;
  });
}

HRESULT NotifyOnFences(Device* device, std::span<ID3D12Fence* const> fences, const UINT64* values,
                       D3D12_MULTIPLE_FENCE_WAIT_FLAGS flags, HANDLE event) {
  std::vector<std::shared_ptr<FenceState>> states;
  for (size_t i = 0; i < fences.size(); ++i) {
    const auto fence = ImplementationOf<Fence>(fences[i]);
    if (!fence || fence->device() != device) {
      return device->Fail(E_INVALIDARG, "SetEventOnMultipleFenceCompletion: ppFences[", i,
                          "] is not a fence of this device");
    }
    states.push_back(fence->state());
  }
  const bool any = (flags & D3D12_MULTIPLE_FENCE_WAIT_FLAG_ANY) != 0;
  const auto needed = any ? 1u : static_cast<uint32_t>(states.size());
  std::shared_ptr<Notification> notification;
  if (event == nullptr) {
    notification = std::make_shared<Notification>(needed);
  } else {
    const int fd = DuplicateEvent(event);
    if (fd < 0) {
      return device->Fail(E_HANDLE,
                          "SetEventOnMultipleFenceCompletion: hEvent is not an event (an eventfd is needed)");
    }
    notification = std::make_shared<Notification>(needed, fd);
  }
  for (size_t i = 0; i < states.size(); ++i) states[i]->Notify(values[i], notification);
  if (event == nullptr) notification->Block();
  return S_OK;
}

}  // namespace anydml::d3d12
