// The part of a DirectML device that outlives the COM object. Recorded commands hold it, so that they can
// remove the device or report errors from the queue's thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"
#include "d3d12/interop.h"
#include "kernel/kernel.h"
#include "schema/schema.h"

namespace anydml::dml {

// Settings from environment variables, read when the device is created (docs/environment.md).
struct DeviceSettings {
  std::string implementation;  // the forced implementation, or empty
  std::string graph_without;   // graph passes to skip
  bool graph_guards = false;   // see GuardedPart
  bool host_fallback = true;   // see LowerContext
};

class DeviceState final : public DataErrorSink {
 public:
  // `d3d` outlives every user of this object: the DirectML device references it, and a queue's thread ends
  // before its device does.
  DeviceState(d3d12::Device* d3d, FeatureLevel level, bool debug, DeviceSettings settings)
      : d3d_(d3d), level_(level), debug_(debug), settings_(std::move(settings)) {}

  d3d12::Device* d3d() const { return d3d_; }
  FeatureLevel level() const { return level_; }
  bool debug() const { return debug_; }
  const DeviceSettings& settings() const { return settings_; }

  // Reports the message (thread's last error, info queue, on request stderr) and returns the code as an
  // HRESULT. S_OK if there is no error.
  HRESULT Fail(const Status& status) const noexcept;

  // Removes the DirectML device; the first reason is kept. The Direct3D device stays usable: its removal
  // implies ours, not the reverse.
  void Remove(const Status& status) noexcept;

  // S_OK, or the reason for the removal: E_INVALIDARG for a wrong argument of a void method,
  // DXGI_ERROR_INVALID_CALL for a call out of order, E_OUTOFMEMORY, or the Direct3D device's own reason.
  // Makes the message the thread's last error.
  HRESULT RemovedReason() const noexcept;

  bool removed() const noexcept;

  // DXGI_ERROR_DEVICE_REMOVED with a message if the device is removed, else S_OK. The first line of every
  // method that returns an HRESULT.
  HRESULT CheckRemoved(const char* method) const noexcept;

  // For the debug layers only: something allowed but probably a mistake. Does not set the thread's last
  // error.
  void Warn(const std::string& message) const noexcept;

  void set_muted(bool muted) { muted_.store(muted, std::memory_order_relaxed); }

  // Null unless the client enabled validation, which costs time on the device.
  DataErrorSink* data_error_sink() { return validates() ? this : nullptr; }
  void ReportDataError(const std::string& message) override;

 private:
  bool validates() const { return debug_ || d3d12::DebugLayerEnabled(d3d_); }
  void Report(const std::string& message) const noexcept;
  std::string RemovalMessage() const;

  d3d12::Device* const d3d_;
  const FeatureLevel level_;
  const bool debug_;
  const DeviceSettings settings_;
  std::atomic<bool> muted_{false};
  std::atomic<HRESULT> reason_{S_OK};
  mutable std::mutex mutex_;
  std::string removal_message_;  // guarded by mutex_
};

// Frame of a void method: `body` returns a Status; a failure or an exception removes the device.
template <typename Body>
void GuardVoid(DeviceState& state, Body&& body) noexcept {
  if (state.removed()) return;
  try {
    const Status status = body();
    if (!status.ok()) state.Remove(status);
  } catch (const std::bad_alloc&) {
    state.Remove(Status(Code::kOutOfMemory, {}));
  } catch (...) {
    state.Remove(Status(Code::kFail, {}));
  }
}

}  // namespace anydml::dml
