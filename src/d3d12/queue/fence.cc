#include "d3d12/queue/fence.h"

#include <cerrno>
#include <system_error>
#include <vector>

#include "com/guard.h"
#include "d3d12/implementation_of.h"

namespace anydml::d3d12 {
namespace {

constexpr char kSetEvent[] = "ID3D12Fence::SetEventOnCompletion";
constexpr char kSetEventOnSeveral[] = "SetEventOnMultipleFenceCompletion";

HRESULT OwnEvent(Device* device, const char* method, HANDLE event, int* fd) {
  *fd = DuplicateEvent(event);
  if (*fd >= 0) return S_OK;
  if (*fd == -EBADF) {
    return device->Fail(E_HANDLE, method, ": hEvent is not an event (an eventfd is needed)");
  }
  return device->Fail(E_OUTOFMEMORY, method,
                      ": the event hEvent cannot be duplicated: ", std::generic_category().message(-*fd));
}

}  // namespace

HRESULT SignalEvent(Device* device, const char* method, HANDLE event) {
  int fd = -1;
  if (const HRESULT hr = OwnEvent(device, method, event, &fd); FAILED(hr)) return hr;
  Notification(1, fd).Fire();
  return S_OK;
}

UINT64 Fence::GetCompletedValue() { return device()->forked() ? UINT64_MAX : state_->value(); }

HRESULT Fence::SetEventOnCompletion(UINT64 value, HANDLE event) {
  return Guard([&] {
    if (device()->forked()) return device()->FailRemoved(kSetEvent);
    if (event == nullptr) {
      state_->Wait(value);
      return S_OK;
    }
    int fd = -1;
    if (const HRESULT hr = OwnEvent(device(), kSetEvent, event, &fd); FAILED(hr)) return hr;
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
  if (device->forked()) return device->FailRemoved(kSetEventOnSeveral);
  std::vector<std::shared_ptr<FenceState>> states;
  for (size_t i = 0; i < fences.size(); ++i) {
    const auto fence = ImplementationOf<Fence>(fences[i]);
    if (!fence || fence->device() != device) {
      return device->Fail(E_INVALIDARG, kSetEventOnSeveral, ": ppFences[", i,
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
    int fd = -1;
    if (const HRESULT hr = OwnEvent(device, kSetEventOnSeveral, event, &fd); FAILED(hr)) return hr;
    notification = std::make_shared<Notification>(needed, fd);
  }
  for (size_t i = 0; i < states.size(); ++i) states[i]->Notify(values[i], notification);
  if (event == nullptr) notification->Block();
  return S_OK;
}

}  // namespace anydml::d3d12
