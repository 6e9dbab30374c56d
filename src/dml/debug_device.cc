#include "dml/debug_device.h"

namespace anydml::dml {

HRESULT DebugDevice::QueryInterface(REFIID riid, void** ppv) { return outer_->QueryInterface(riid, ppv); }

ULONG DebugDevice::AddRef() { return outer_->AddRef(); }

ULONG DebugDevice::Release() { return outer_->Release(); }

void DebugDevice::SetMuteDebugOutput(BOOL mute) {
  if (!state_->removed()) state_->set_muted(mute != 0);
}

}  // namespace anydml::dml
