// ID3D12DebugDevice2 and ID3D12DebugDevice1, available from a device while the debug layer is on. Their
// settings are stored and have no effect.
#pragma once

#include <d3d12.h>

namespace anydml::d3d12 {

// Two more inheritance chains of the device; references and QueryInterface are the device's.
class DebugDevice final : public ID3D12DebugDevice2 {
 public:
  explicit DebugDevice(IUnknown* device) : device_(device) {}

  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** object) override {
    return device_->QueryInterface(iid, object);
  }
  ULONG STDMETHODCALLTYPE AddRef() override { return device_->AddRef(); }
  ULONG STDMETHODCALLTYPE Release() override { return device_->Release(); }

  HRESULT STDMETHODCALLTYPE SetFeatureMask(D3D12_DEBUG_FEATURE) override { return S_OK; }
  D3D12_DEBUG_FEATURE STDMETHODCALLTYPE GetFeatureMask() override { return D3D12_DEBUG_FEATURE_NONE; }
  HRESULT STDMETHODCALLTYPE ReportLiveDeviceObjects(D3D12_RLDO_FLAGS flags) override;
  HRESULT STDMETHODCALLTYPE SetDebugParameter(D3D12_DEBUG_DEVICE_PARAMETER_TYPE, const void*, UINT) override {
    return E_NOTIMPL;
  }
  HRESULT STDMETHODCALLTYPE GetDebugParameter(D3D12_DEBUG_DEVICE_PARAMETER_TYPE, void*, UINT) override {
    return E_NOTIMPL;
  }

 private:
  IUnknown* const device_;
};

class DebugDevice1 final : public ID3D12DebugDevice1 {
 public:
  explicit DebugDevice1(DebugDevice* main) : main_(main) {}

  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** object) override {
    return main_->QueryInterface(iid, object);
  }
  ULONG STDMETHODCALLTYPE AddRef() override { return main_->AddRef(); }
  ULONG STDMETHODCALLTYPE Release() override { return main_->Release(); }

  HRESULT STDMETHODCALLTYPE SetDebugParameter(D3D12_DEBUG_DEVICE_PARAMETER_TYPE type, const void* data,
                                              UINT size) override {
    return main_->SetDebugParameter(type, data, size);
  }
  HRESULT STDMETHODCALLTYPE GetDebugParameter(D3D12_DEBUG_DEVICE_PARAMETER_TYPE type, void* data,
                                              UINT size) override {
    return main_->GetDebugParameter(type, data, size);
  }
  HRESULT STDMETHODCALLTYPE ReportLiveDeviceObjects(D3D12_RLDO_FLAGS flags) override {
    return main_->ReportLiveDeviceObjects(flags);
  }

 private:
  DebugDevice* const main_;
};

}  // namespace anydml::d3d12
