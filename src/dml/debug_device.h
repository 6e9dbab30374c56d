// IDMLDebugDevice: a second inheritance chain of the device, so an inner object
// that shares the device's identity and reference count.
#pragma once

#include <DirectML.h>

#include "dml/device_state.h"

namespace anydml::dml {

class DebugDevice final : public IDMLDebugDevice {
 public:
  DebugDevice(IUnknown* outer, DeviceState* state) : outer_(outer), state_(state) {}

  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID riid, void** ppv) override;
  ULONG STDMETHODCALLTYPE AddRef() override;
  ULONG STDMETHODCALLTYPE Release() override;
  void STDMETHODCALLTYPE SetMuteDebugOutput(BOOL mute) override;

 private:
  IUnknown* const outer_;  // the device, of which this is a member
  DeviceState* const state_;
};

}  // namespace anydml::dml
