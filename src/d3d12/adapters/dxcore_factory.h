#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "backend/backend.h"
#include "com/com_object.h"

namespace anydml::d3d12 {

class DxCoreFactory final : public ComObject<IDXCoreAdapterFactory1, IDXCoreAdapterFactory> {
 public:
  HRESULT STDMETHODCALLTYPE CreateAdapterList(uint32_t count, const GUID* attributes, REFIID iid,
                                              void** list) override;
  HRESULT STDMETHODCALLTYPE GetAdapterByLuid(const LUID& luid, REFIID iid, void** adapter) override;
  bool STDMETHODCALLTYPE IsNotificationTypeSupported(DXCoreNotificationType type) override;
  HRESULT STDMETHODCALLTYPE RegisterEventNotification(IUnknown* object, DXCoreNotificationType type,
                                                      PFN_DXCORE_NOTIFICATION_CALLBACK callback,
                                                      void* context, uint32_t* cookie) override;
  HRESULT STDMETHODCALLTYPE UnregisterEventNotification(uint32_t cookie) override;
  HRESULT STDMETHODCALLTYPE CreateAdapterListByWorkload(DXCoreWorkload workload,
                                                        DXCoreRuntimeFilterFlags runtime_filter,
                                                        DXCoreHardwareTypeFilterFlags hardware_filter,
                                                        REFIID iid, void** list) override;

 private:
  // The adapters never change while a process runs, so nothing is ever notified; registrations are stored
  // only so that they can be removed.
  std::mutex mutex_;
  std::set<uint32_t> cookies_;
  uint32_t next_cookie_ = 1;
};

class DxCoreAdapterList final : public ComObject<IDXCoreAdapterList> {
 public:
  DxCoreAdapterList(IUnknown* factory, std::vector<Backend*> backends)
      : factory_(factory), backends_(std::move(backends)) {}

  HRESULT STDMETHODCALLTYPE GetAdapter(uint32_t index, REFIID iid, void** adapter) override;
  uint32_t STDMETHODCALLTYPE GetAdapterCount() override;
  bool STDMETHODCALLTYPE IsStale() override { return false; }
  HRESULT STDMETHODCALLTYPE GetFactory(REFIID iid, void** factory) override {
    return factory_->QueryInterface(iid, factory);
  }
  HRESULT STDMETHODCALLTYPE Sort(uint32_t count, const DXCoreAdapterPreference* preferences) override;
  bool STDMETHODCALLTYPE IsAdapterPreferenceSupported(DXCoreAdapterPreference preference) override;

 private:
  const ComPtr<IUnknown> factory_;
  std::mutex mutex_;
  std::vector<Backend*> backends_;
};

}  // namespace anydml::d3d12
