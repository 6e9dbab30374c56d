#include "d3d12/adapters/dxcore_factory.h"

#include <algorithm>

#include "com/guard.h"
#include "d3d12/adapters/adapter_kind.h"
#include "d3d12/adapters/adapter_lookup.h"
#include "d3d12/adapters/dxcore_adapter.h"

namespace anydml::d3d12 {
namespace {

DXCoreHardwareTypeFilterFlags HardwareTypeOf(const Backend& backend) {
  switch (KindOf(backend)) {
    case AdapterKind::kGpu:
      return DXCoreHardwareTypeFilterFlags::GPU;
    case AdapterKind::kComputeAccelerator:
      return DXCoreHardwareTypeFilterFlags::ComputeAccelerator;
    case AdapterKind::kNpu:
      return DXCoreHardwareTypeFilterFlags::NPU;
    case AdapterKind::kSoftware:
      break;
  }
  return DXCoreHardwareTypeFilterFlags::None;
}

}  // namespace

HRESULT DxCoreFactory::CreateAdapterList(uint32_t count, const GUID* attributes, REFIID iid, void** list) {
  return Guard([&] {
    if (list == nullptr)
      return Fail(E_POINTER, "IDXCoreAdapterFactory::CreateAdapterList: ppvAdapterList is null");
    *list = nullptr;
    if (count == 0 || attributes == nullptr) {
      return Fail(
          E_INVALIDARG,
          "IDXCoreAdapterFactory::CreateAdapterList: filterAttributes must hold at least one attribute");
    }
    std::vector<Backend*> matching;
    for (Backend* backend : Backends()) {
      const bool all = std::all_of(attributes, attributes + count, [backend](REFGUID attribute) {
        return SupportsAttribute(*backend, attribute);
      });
      if (all) matching.push_back(backend);
    }
    return CreateComObject<DxCoreAdapterList>(iid, list, this, std::move(matching));
  });
}

HRESULT DxCoreFactory::CreateAdapterListByWorkload(DXCoreWorkload workload, DXCoreRuntimeFilterFlags,
                                                   DXCoreHardwareTypeFilterFlags hardware_filter, REFIID iid,
                                                   void** list) {
  return Guard([&] {
    if (list == nullptr) {
      return Fail(E_POINTER, "IDXCoreAdapterFactory1::CreateAdapterListByWorkload: ppvAdapterList is null");
    }
    *list = nullptr;
    std::vector<Backend*> matching;
    const bool workload_fits =
        workload == DXCoreWorkload::Compute || workload == DXCoreWorkload::MachineLearning;
    for (Backend* backend : Backends()) {
      const bool hardware_fits =
          hardware_filter == DXCoreHardwareTypeFilterFlags::None ||
          (hardware_filter & HardwareTypeOf(*backend)) != DXCoreHardwareTypeFilterFlags::None;
      if (workload_fits && hardware_fits) matching.push_back(backend);
    }
    return CreateComObject<DxCoreAdapterList>(iid, list, this, std::move(matching));
  });
}

HRESULT DxCoreFactory::GetAdapterByLuid(const LUID& luid, REFIID iid, void** adapter) {
  return Guard([&] {
    if (adapter == nullptr)
      return Fail(E_POINTER, "IDXCoreAdapterFactory::GetAdapterByLuid: ppvAdapter is null");
    *adapter = nullptr;
    Backend* const backend = BackendFromLuid(luid);
    if (backend == nullptr)
      return Fail(E_INVALIDARG, "IDXCoreAdapterFactory::GetAdapterByLuid: no such adapter");
    return CreateComObject<DxCoreAdapter>(iid, adapter, this, *backend);
  });
}

bool DxCoreFactory::IsNotificationTypeSupported(DXCoreNotificationType type) {
  return type <= DXCoreNotificationType::AdapterHardwareContentProtectionTeardown;
}

HRESULT DxCoreFactory::RegisterEventNotification(IUnknown* object, DXCoreNotificationType type,
                                                 PFN_DXCORE_NOTIFICATION_CALLBACK callback, void*,
                                                 uint32_t* cookie) {
  return Guard([&] {
    if (object == nullptr || callback == nullptr || cookie == nullptr) {
      return Fail(
          E_POINTER,
          "IDXCoreAdapterFactory::RegisterEventNotification: no argument but the context may be null");
    }
    if (!IsNotificationTypeSupported(type)) return DXGI_ERROR_INVALID_CALL;
    std::lock_guard lock(mutex_);
    cookies_.insert(next_cookie_);
    *cookie = next_cookie_++;
    return S_OK;
  });
}

HRESULT DxCoreFactory::UnregisterEventNotification(uint32_t cookie) {
  std::lock_guard lock(mutex_);
  return cookies_.erase(cookie) != 0 ? S_OK : E_INVALIDARG;
}

HRESULT DxCoreAdapterList::GetAdapter(uint32_t index, REFIID iid, void** adapter) {
  return Guard([&] {
    if (adapter == nullptr) return Fail(E_POINTER, "IDXCoreAdapterList::GetAdapter: ppvAdapter is null");
    *adapter = nullptr;
    std::lock_guard lock(mutex_);
    if (index >= backends_.size()) {
      return Fail(E_INVALIDARG, StrCat("IDXCoreAdapterList::GetAdapter: index is ", index,
                                       " but the list has ", backends_.size(), " adapters"));
    }
    return CreateComObject<DxCoreAdapter>(iid, adapter, factory_.get(), *backends_[index]);
  });
}

uint32_t DxCoreAdapterList::GetAdapterCount() {
  std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(backends_.size());
}

HRESULT DxCoreAdapterList::Sort(uint32_t count, const DXCoreAdapterPreference* preferences) {
  if (count == 0 || preferences == nullptr) {
    return Fail(E_INVALIDARG, "IDXCoreAdapterList::Sort: there must be at least one preference");
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!IsAdapterPreferenceSupported(preferences[i])) return E_INVALIDARG;
  }
  // Backends() is sorted best first; only minimum power needs another order. All adapters are hardware, so
  // that preference does not distinguish any.
  const auto* decisive = std::find_if(
      preferences, preferences + count,
      [](DXCoreAdapterPreference preference) { return preference != DXCoreAdapterPreference::Hardware; });
  if (decisive == preferences + count) return S_OK;
  const bool gpu_first = *decisive == DXCoreAdapterPreference::HighPerformance;
  std::lock_guard lock(mutex_);
  std::stable_partition(backends_.begin(), backends_.end(), [gpu_first](const Backend* backend) {
    return backend->adapter().is_gpu == gpu_first;
  });
  return S_OK;
}

bool DxCoreAdapterList::IsAdapterPreferenceSupported(DXCoreAdapterPreference preference) {
  return preference <= DXCoreAdapterPreference::HighPerformance;
}

}  // namespace anydml::d3d12
