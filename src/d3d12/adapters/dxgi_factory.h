#pragma once

#include <dxgi1_6.h>

#include "backend/backend.h"
#include "com/private_data.h"

namespace anydml::d3d12 {

class DxgiFactory final
    : public ComObject<IDXGIFactory7, IDXGIObject, IDXGIFactory, IDXGIFactory1, IDXGIFactory2, IDXGIFactory3,
                       IDXGIFactory4, IDXGIFactory5, IDXGIFactory6> {
 public:
  explicit DxgiFactory(UINT flags) : flags_(flags) {}

  HRESULT STDMETHODCALLTYPE SetPrivateData(REFGUID guid, UINT size, const void* data) override {
    return private_data_.Set(guid, size, data);
  }
  HRESULT STDMETHODCALLTYPE SetPrivateDataInterface(REFGUID guid, const IUnknown* object) override {
    return private_data_.SetInterface(guid, object);
  }
  HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override {
    return private_data_.Get(guid, size, data);
  }
  HRESULT STDMETHODCALLTYPE GetParent(REFIID, void** parent) override {
    if (parent != nullptr) *parent = nullptr;
    return E_NOINTERFACE;  // a factory has none
  }

  HRESULT STDMETHODCALLTYPE EnumAdapters(UINT index, IDXGIAdapter** adapter) override;
  HRESULT STDMETHODCALLTYPE EnumAdapters1(UINT index, IDXGIAdapter1** adapter) override;
  HRESULT STDMETHODCALLTYPE EnumAdapterByLuid(LUID luid, REFIID iid, void** adapter) override;
  HRESULT STDMETHODCALLTYPE EnumWarpAdapter(REFIID iid, void** adapter) override;
  HRESULT STDMETHODCALLTYPE EnumAdapterByGpuPreference(UINT index, DXGI_GPU_PREFERENCE preference, REFIID iid,
                                                       void** adapter) override;
  HRESULT STDMETHODCALLTYPE CreateSoftwareAdapter(HMODULE, IDXGIAdapter** adapter) override;
  BOOL STDMETHODCALLTYPE IsCurrent() override { return TRUE; }
  UINT STDMETHODCALLTYPE GetCreationFlags() override { return flags_; }
  HRESULT STDMETHODCALLTYPE CheckFeatureSupport(DXGI_FEATURE feature, void* data, UINT size) override;

  // There is no support for windows.
  HRESULT STDMETHODCALLTYPE MakeWindowAssociation(HWND, UINT) override { return DXGI_ERROR_UNSUPPORTED; }
  HRESULT STDMETHODCALLTYPE GetWindowAssociation(HWND*) override { return DXGI_ERROR_UNSUPPORTED; }
  HRESULT STDMETHODCALLTYPE CreateSwapChain(IUnknown*, DXGI_SWAP_CHAIN_DESC*, IDXGISwapChain** out) override {
    return NoSwapChain(out);
  }
  BOOL STDMETHODCALLTYPE IsWindowedStereoEnabled() override { return FALSE; }
  HRESULT STDMETHODCALLTYPE CreateSwapChainForHwnd(IUnknown*, HWND, const DXGI_SWAP_CHAIN_DESC1*,
                                                   const DXGI_SWAP_CHAIN_FULLSCREEN_DESC*, IDXGIOutput*,
                                                   IDXGISwapChain1** out) override {
    return NoSwapChain(out);
  }
  HRESULT STDMETHODCALLTYPE CreateSwapChainForCoreWindow(IUnknown*, IUnknown*, const DXGI_SWAP_CHAIN_DESC1*,
                                                         IDXGIOutput*, IDXGISwapChain1** out) override {
    return NoSwapChain(out);
  }
  HRESULT STDMETHODCALLTYPE CreateSwapChainForComposition(IUnknown*, const DXGI_SWAP_CHAIN_DESC1*,
                                                          IDXGIOutput*, IDXGISwapChain1** out) override {
    return NoSwapChain(out);
  }
  HRESULT STDMETHODCALLTYPE GetSharedResourceAdapterLuid(HANDLE, LUID*) override { return E_NOTIMPL; }
  HRESULT STDMETHODCALLTYPE RegisterStereoStatusWindow(HWND, UINT, DWORD*) override { return E_NOTIMPL; }
  HRESULT STDMETHODCALLTYPE RegisterStereoStatusEvent(HANDLE, DWORD*) override { return E_NOTIMPL; }
  void STDMETHODCALLTYPE UnregisterStereoStatus(DWORD) override {}
  HRESULT STDMETHODCALLTYPE RegisterOcclusionStatusWindow(HWND, UINT, DWORD*) override { return E_NOTIMPL; }
  HRESULT STDMETHODCALLTYPE RegisterOcclusionStatusEvent(HANDLE, DWORD*) override { return E_NOTIMPL; }
  void STDMETHODCALLTYPE UnregisterOcclusionStatus(DWORD) override {}
  // The set of adapters never changes, so this event is never set.
  HRESULT STDMETHODCALLTYPE RegisterAdaptersChangedEvent(HANDLE, DWORD* cookie) override;
  HRESULT STDMETHODCALLTYPE UnregisterAdaptersChangedEvent(DWORD cookie) override;

 private:
  template <typename T>
  static HRESULT NoSwapChain(T** out) {
    if (out != nullptr) *out = nullptr;
    return DXGI_ERROR_UNSUPPORTED;
  }
  HRESULT MakeAdapter(const char* method, Backend* backend, REFIID iid, void** adapter);

  const UINT flags_;
  PrivateData private_data_;
};

}  // namespace anydml::d3d12
