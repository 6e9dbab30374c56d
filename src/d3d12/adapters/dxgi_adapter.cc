#include "d3d12/adapters/dxgi_adapter.h"

#include "com/guard.h"
#include "d3d12/adapters/adapter_kind.h"
#include "d3d12/adapters/adapter_lookup.h"
#include "d3d12/adapters/memory_usage.h"

namespace anydml::d3d12 {
// The fields that all versions of the description share.
template <typename Desc>
HRESULT DxgiAdapter::Describe(const char* method, Desc* desc) const {
  if (desc == nullptr) return Fail(E_INVALIDARG, StrCat("IDXGIAdapter::", method, ": pDesc is null"));
  const AdapterInfo& info = backend_.adapter();
  *desc = {};
  CopyWide(info.description, desc->Description, ARRAYSIZE(desc->Description));
  desc->VendorId = info.vendor_id;
  desc->DeviceId = info.device_id;
  desc->DedicatedVideoMemory = info.dedicated_bytes;
  desc->SharedSystemMemory = info.shared_bytes;
  desc->AdapterLuid = LuidOf(backend_);
  if constexpr (requires { desc->Flags; }) {
    // Programs skip software adapters, so an adapter reports itself as one only on request
    // (ANYDML_ADAPTER_KIND).
    static_assert(int{DXGI_ADAPTER_FLAG_SOFTWARE} == int{DXGI_ADAPTER_FLAG3_SOFTWARE});
    if (KindOf(backend_) == AdapterKind::kSoftware) {
      desc->Flags = static_cast<decltype(desc->Flags)>(DXGI_ADAPTER_FLAG_SOFTWARE);
    }
  }
  return S_OK;
}

HRESULT DxgiAdapter::GetDesc(DXGI_ADAPTER_DESC* desc) {
  return Guard([&] { return Describe("GetDesc", desc); });
}

HRESULT DxgiAdapter::GetDesc1(DXGI_ADAPTER_DESC1* desc) {
  return Guard([&] { return Describe("GetDesc1", desc); });
}

HRESULT DxgiAdapter::GetDesc2(DXGI_ADAPTER_DESC2* desc) {
  return Guard([&] { return Describe("GetDesc2", desc); });
}

HRESULT DxgiAdapter::GetDesc3(DXGI_ADAPTER_DESC3* desc) {
  return Guard([&] { return Describe("GetDesc3", desc); });
}

HRESULT DxgiAdapter::EnumOutputs(UINT, IDXGIOutput** output) {
  if (output == nullptr) return E_INVALIDARG;
  *output = nullptr;
  return DXGI_ERROR_NOT_FOUND;
}

HRESULT DxgiAdapter::CheckInterfaceSupport(REFGUID name, LARGE_INTEGER* version) {
  // Meant for Direct3D 10 devices; programs pass IDXGIDevice to get the driver's version.
  if (name != __uuidof(IDXGIDevice)) return DXGI_ERROR_UNSUPPORTED;
  if (version != nullptr) version->QuadPart = 1;
  return S_OK;
}

HRESULT DxgiAdapter::QueryVideoMemoryInfo(UINT node, DXGI_MEMORY_SEGMENT_GROUP group,
                                          DXGI_QUERY_VIDEO_MEMORY_INFO* info) {
  return Guard([&] {
    if (info == nullptr || node != 0 || group > DXGI_MEMORY_SEGMENT_GROUP_NON_LOCAL) {
      return Fail(
          E_INVALIDARG,
          "IDXGIAdapter3::QueryVideoMemoryInfo: the node must be 0, the group LOCAL or NON_LOCAL, and "
          "pVideoMemoryInfo not null");
    }
    *info = {};
    const AdapterInfo& adapter = backend_.adapter();
    if (group == DXGI_MEMORY_SEGMENT_GROUP_LOCAL) {
      info->Budget = adapter.dedicated_bytes != 0 ? adapter.dedicated_bytes : adapter.shared_bytes;
      info->CurrentUsage = MemoryInUse(backend_);
    } else if (adapter.dedicated_bytes != 0) {
      info->Budget = adapter.shared_bytes;
    }
    info->AvailableForReservation = info->Budget / 2;
    return S_OK;
  });
}

HRESULT DxgiAdapter::SetVideoMemoryReservation(UINT node, DXGI_MEMORY_SEGMENT_GROUP, UINT64) {
  return node == 0 ? S_OK : E_INVALIDARG;
}

// Budgets and protection never change, so these events are never set.
HRESULT DxgiAdapter::RegisterHardwareContentProtectionTeardownStatusEvent(HANDLE, DWORD* cookie) {
  if (cookie == nullptr) return E_INVALIDARG;
  *cookie = 1;
  return S_OK;
}

HRESULT DxgiAdapter::RegisterVideoMemoryBudgetChangeNotificationEvent(HANDLE, DWORD* cookie) {
  if (cookie == nullptr) return E_INVALIDARG;
  *cookie = 1;
  return S_OK;
}

}  // namespace anydml::d3d12
