#include "d3d12/device/device.h"

#include <algorithm>
#include <cstdio>

#include "base/report.h"
#include "com/guard.h"
#include "d3d12/device/device_registry.h"
#include "d3d12/queue/fence_state.h"

namespace anydml::d3d12 {
namespace {

const char* SeverityName(D3D12_MESSAGE_SEVERITY severity) {
  switch (severity) {
    case D3D12_MESSAGE_SEVERITY_CORRUPTION:
      return "CORRUPTION";
    case D3D12_MESSAGE_SEVERITY_ERROR:
      return "ERROR";
    case D3D12_MESSAGE_SEVERITY_WARNING:
      return "WARNING";
    case D3D12_MESSAGE_SEVERITY_INFO:
      return "INFO";
    default:
      return "MESSAGE";
  }
}

}  // namespace

Device::Device(Backend& backend, bool debug)
    : backend_(backend),
      debug_(debug),
      info_queue_(static_cast<ID3D12Device9*>(this)),
      debug_device_(static_cast<ID3D12Device9*>(this)),
      debug_device1_(&debug_device_) {}

Device::~Device() { ForgetDevice(this); }

void* Device::QueryOther(REFIID iid) {
  if (iid == kImplementation) return this;
  if (iid == __uuidof(ID3D12InfoQueue) || iid == __uuidof(ID3D12InfoQueue1)) {
    return static_cast<ID3D12InfoQueue1*>(&info_queue_);
  }
  if (!debug_) return nullptr;
  if (iid == __uuidof(ID3D12DebugDevice) || iid == __uuidof(ID3D12DebugDevice2)) {
    return static_cast<ID3D12DebugDevice2*>(&debug_device_);
  }
  if (iid == __uuidof(ID3D12DebugDevice1)) return static_cast<ID3D12DebugDevice1*>(&debug_device1_);
  return nullptr;
}

HRESULT Device::FailWith(HRESULT code, D3D12_MESSAGE_ID id, const std::string& message) noexcept {
  ReportError(message, debug_ && info_queue_.GetMuteDebugOutput() == FALSE);
  if (forked()) return code;  // a thread of the parent may have held the info queue's locks during the fork
  info_queue_.Add(D3D12_MESSAGE_CATEGORY_EXECUTION, D3D12_MESSAGE_SEVERITY_ERROR, id, message);
  return code;
}

HRESULT Device::Fail(const char* method, const Status& status) noexcept {
  return Fail(ToHresult(status.code()), method, ": ", status.message());
}

void Device::PostText(D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id,
                      const std::string& text) noexcept {
  if (forked()) return;
  if ((debug_ || DebugRequested()) && info_queue_.GetMuteDebugOutput() == FALSE) {
    std::fprintf(stderr, "D3D12 %s: %s\n", SeverityName(severity), text.c_str());
  }
  info_queue_.Add(D3D12_MESSAGE_CATEGORY_EXECUTION, severity, id, text);
}

void Device::Unsupported(const char* method) {
  Fail(E_NOTIMPL, "ID3D12Device::", method,
       ": not implemented; this is a compute-only device without shaders");
}

void Device::RemoveWith(HRESULT reason, const std::string& text) noexcept {
  if (forked()) return;  // counts as removed
  HRESULT working = S_OK;
  if (!removed_reason_.compare_exchange_strong(working, reason)) return;
  FailWith(reason, D3D12_MESSAGE_ID_DEVICE_REMOVAL_PROCESS_AT_FAULT, text);
  std::vector<std::weak_ptr<FenceState>> fences;
  {
    std::lock_guard lock(fences_mutex_);
    fences.swap(fences_);
  }
  for (const auto& weak : fences) {
    if (const auto fence = weak.lock()) fence->Remove();
  }
}

void Device::Track(const std::shared_ptr<FenceState>& fence) {
  {
    std::lock_guard lock(fences_mutex_);
    // Dead entries are dropped when the vector would grow, so their number is bounded by that of live ones.
    if (fences_.size() == fences_.capacity()) {
      fences_.erase(
          std::remove_if(fences_.begin(), fences_.end(), [](const auto& weak) { return weak.expired(); }),
          fences_.end());
      fences_.reserve(std::max<size_t>(16, fences_.size() * 2));
    }
    fences_.push_back(fence);
  }
  if (removed()) fence->Remove();  // the device may have been removed before the fence was in the list
}

const char* Device::WhyRemoved() const noexcept {
  return forked() ? "belongs to the parent process, whose threads this one does not have; create another one "
                    "after the fork"
                  : "was removed";
}

LUID Device::GetAdapterLuid() {
  const uint64_t luid = backend_.adapter().luid;
  return {static_cast<ULONG>(luid), static_cast<LONG>(luid >> 32)};
}

void Device::RemoveDevice() {
  Guard([&] {
    Remove(DXGI_ERROR_DEVICE_REMOVED, "ID3D12Device5::RemoveDevice: the application removed the device");
    return S_OK;
  });
}

}  // namespace anydml::d3d12
