#include "dml/device_state.h"

#include <cstdio>

#include "base/report.h"
#include "com/guard.h"

namespace anydml::dml {
namespace {

// Statuses without a message come from places where building one would allocate.
const char* FallbackMessage(Code code) {
  return code == Code::kOutOfMemory ? "out of memory" : "unexpected failure";
}

}  // namespace

HRESULT DeviceState::Fail(const Status& status) const noexcept {
  if (status.ok()) return S_OK;
  try {
    Report(status.message().empty() ? FallbackMessage(status.code()) : status.message());
  } catch (...) {  // no memory for the message: the code alone must do
  }
  return ToHresult(status.code());
}

void DeviceState::Remove(const Status& status) noexcept {
  try {
    const std::string message = status.message().empty() ? FallbackMessage(status.code()) : status.message();
    {
      std::lock_guard lock(mutex_);
      if (reason_.load(std::memory_order_relaxed) == S_OK) {
        removal_message_ = message;
        reason_.store(ToHresult(status.code()), std::memory_order_release);
      }
    }
    Report(message);
  } catch (...) {
    HRESULT none = S_OK;
    reason_.compare_exchange_strong(none, E_OUTOFMEMORY);
  }
}

HRESULT DeviceState::RemovedReason() const noexcept {
  HRESULT reason = reason_.load(std::memory_order_acquire);
  if (reason == S_OK) reason = d3d12::RemovedReason(d3d_);
  if (reason == S_OK) return S_OK;
  try {
    ReportError(RemovalMessage());
  } catch (...) {
  }
  return reason;
}

bool DeviceState::removed() const noexcept {
  return reason_.load(std::memory_order_acquire) != S_OK || d3d12::RemovedReason(d3d_) != S_OK;
}

HRESULT DeviceState::CheckRemoved(const char* method) const noexcept {
  if (!removed()) return S_OK;
  try {
    ReportError(StrCat(method, ": the DirectML device was removed: ", RemovalMessage()));
  } catch (...) {
  }
  return DXGI_ERROR_DEVICE_REMOVED;
}

void DeviceState::ReportDataError(const std::string& message) { Report(message); }

void DeviceState::Report(const std::string& message) const noexcept {
  const bool muted = muted_.load(std::memory_order_relaxed);
  // Under the Direct3D debug layer PostMessage prints, and one line is enough.
  ReportError(message, debug_ && !muted && !d3d12::DebugLayerEnabled(d3d_));
  if (muted) return;
  try {
    d3d12::PostMessage(d3d_, D3D12_MESSAGE_SEVERITY_ERROR, D3D12_MESSAGE_ID_UNKNOWN, message);
  } catch (...) {
  }
}

void DeviceState::Warn(const std::string& message) const noexcept {
  if (!validates() || muted_.load(std::memory_order_relaxed)) return;
  if (!d3d12::DebugLayerEnabled(d3d_)) std::fprintf(stderr, "[DIRECTML WARNING]: %s\n", message.c_str());
  try {
    d3d12::PostMessage(d3d_, D3D12_MESSAGE_SEVERITY_WARNING, D3D12_MESSAGE_ID_UNKNOWN, message);
  } catch (...) {
  }
}

std::string DeviceState::RemovalMessage() const {
  std::lock_guard lock(mutex_);
  if (!removal_message_.empty()) return removal_message_;
  return StrCat("the Direct3D device ", d3d12::WhyRemoved(d3d_));
}

}  // namespace anydml::dml
