#pragma once

#include <dxgi1_6.h>

#include "backend/backend.h"
#include "com/private_data.h"

namespace anydml::d3d12 {

class DxgiAdapter final : public ComObject<IDXGIAdapter4, IDXGIObject, IDXGIAdapter, IDXGIAdapter1,
                                           IDXGIAdapter2, IDXGIAdapter3> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x11}};

  DxgiAdapter(IUnknown* factory, Backend& backend) : factory_(factory), backend_(backend) {}

  HRESULT STDMETHODCALLTYPE SetPrivateData(REFGUID guid, UINT size, const void* data) override {
    return private_data_.Set(guid, size, data);
  }
  HRESULT STDMETHODCALLTYPE SetPrivateDataInterface(REFGUID guid, const IUnknown* object) override {
    return private_data_.SetInterface(guid, object);
  }
  HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override {
    return private_data_.Get(guid, size, data);
  }
  HRESULT STDMETHODCALLTYPE GetParent(REFIID iid, void** parent) override {
    return factory_->QueryInterface(iid, parent);
  }
  HRESULT STDMETHODCALLTYPE EnumOutputs(UINT index, IDXGIOutput** output) override;
  HRESULT STDMETHODCALLTYPE GetDesc(DXGI_ADAPTER_DESC* desc) override;
  HRESULT STDMETHODCALLTYPE CheckInterfaceSupport(REFGUID name, LARGE_INTEGER* version) override;
  HRESULT STDMETHODCALLTYPE GetDesc1(DXGI_ADAPTER_DESC1* desc) override;
  HRESULT STDMETHODCALLTYPE GetDesc2(DXGI_ADAPTER_DESC2* desc) override;
  HRESULT STDMETHODCALLTYPE RegisterHardwareContentProtectionTeardownStatusEvent(HANDLE event,
                                                                                 DWORD* cookie) override;
  void STDMETHODCALLTYPE UnregisterHardwareContentProtectionTeardownStatus(DWORD) override {}
  HRESULT STDMETHODCALLTYPE QueryVideoMemoryInfo(UINT node, DXGI_MEMORY_SEGMENT_GROUP group,
                                                 DXGI_QUERY_VIDEO_MEMORY_INFO* info) override;
  HRESULT STDMETHODCALLTYPE SetVideoMemoryReservation(UINT node, DXGI_MEMORY_SEGMENT_GROUP group,
                                                      UINT64 reservation) override;
  HRESULT STDMETHODCALLTYPE RegisterVideoMemoryBudgetChangeNotificationEvent(HANDLE event,
                                                                             DWORD* cookie) override;
  void STDMETHODCALLTYPE UnregisterVideoMemoryBudgetChangeNotification(DWORD) override {}
  HRESULT STDMETHODCALLTYPE GetDesc3(DXGI_ADAPTER_DESC3* desc) override;

  Backend& backend() const { return backend_; }

 protected:
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  template <typename Desc>
  HRESULT Describe(const char* method, Desc* desc) const;

  const ComPtr<IUnknown> factory_;
  Backend& backend_;
  PrivateData private_data_;
};

}  // namespace anydml::d3d12
