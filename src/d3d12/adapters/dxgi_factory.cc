#include "d3d12/adapters/dxgi_factory.h"

#include <algorithm>
#include <vector>

#include "com/guard.h"
#include "d3d12/adapters/adapter_lookup.h"
#include "d3d12/adapters/dxgi_adapter.h"

namespace anydml::d3d12 {
namespace {

// Null after the last, which ends a program's enumeration.
Backend* BackendAt(UINT index) { return index < Backends().size() ? Backends()[index] : nullptr; }

}  // namespace

HRESULT DxgiFactory::MakeAdapter(const char* method, Backend* backend, REFIID iid, void** adapter) {
  return Guard([&] {
    if (adapter == nullptr)
      return Fail(DXGI_ERROR_INVALID_CALL, StrCat("IDXGIFactory::", method, ": ppAdapter is null"));
    *adapter = nullptr;
    if (backend == nullptr) return DXGI_ERROR_NOT_FOUND;
    return CreateComObject<DxgiAdapter>(iid, adapter, this, *backend);
  });
}

HRESULT DxgiFactory::EnumAdapters(UINT index, IDXGIAdapter** adapter) {
  return MakeAdapter("EnumAdapters", BackendAt(index), __uuidof(IDXGIAdapter),
                     reinterpret_cast<void**>(adapter));
}

HRESULT DxgiFactory::EnumAdapters1(UINT index, IDXGIAdapter1** adapter) {
  return MakeAdapter("EnumAdapters1", BackendAt(index), __uuidof(IDXGIAdapter1),
                     reinterpret_cast<void**>(adapter));
}

HRESULT DxgiFactory::EnumAdapterByLuid(LUID luid, REFIID iid, void** adapter) {
  return MakeAdapter("EnumAdapterByLuid", BackendFromLuid(luid), iid, adapter);
}

HRESULT DxgiFactory::EnumWarpAdapter(REFIID iid, void** adapter) {
  const auto backends = Backends();
  const auto cpu = std::find_if(backends.begin(), backends.end(),
                                [](const Backend* backend) { return !backend->adapter().is_gpu; });
  return MakeAdapter("EnumWarpAdapter", cpu == backends.end() ? nullptr : *cpu, iid, adapter);
}

HRESULT DxgiFactory::EnumAdapterByGpuPreference(UINT index, DXGI_GPU_PREFERENCE preference, REFIID iid,
                                                void** adapter) {
  return Guard([&] {
    std::vector<Backend*> backends(Backends().begin(), Backends().end());
    if (preference != DXGI_GPU_PREFERENCE_UNSPECIFIED) {
      const bool gpu_first = preference == DXGI_GPU_PREFERENCE_HIGH_PERFORMANCE;
      std::stable_partition(backends.begin(), backends.end(), [gpu_first](const Backend* backend) {
        return backend->adapter().is_gpu == gpu_first;
      });
    }
    return MakeAdapter("EnumAdapterByGpuPreference", index < backends.size() ? backends[index] : nullptr, iid,
                       adapter);
  });
}

HRESULT DxgiFactory::CreateSoftwareAdapter(HMODULE, IDXGIAdapter** adapter) {
  if (adapter != nullptr) *adapter = nullptr;
  return DXGI_ERROR_UNSUPPORTED;
}

HRESULT DxgiFactory::CheckFeatureSupport(DXGI_FEATURE feature, void* data, UINT size) {
  if (feature != DXGI_FEATURE_PRESENT_ALLOW_TEARING || data == nullptr || size != sizeof(BOOL))
    return E_INVALIDARG;
  *static_cast<BOOL*>(data) = FALSE;
  return S_OK;
}

HRESULT DxgiFactory::RegisterAdaptersChangedEvent(HANDLE, DWORD* cookie) {
  if (cookie == nullptr) return DXGI_ERROR_INVALID_CALL;
  *cookie = 1;
  return S_OK;
}

HRESULT DxgiFactory::UnregisterAdaptersChangedEvent(DWORD cookie) {
  return cookie == 1 ? S_OK : DXGI_ERROR_INVALID_CALL;
}

}  // namespace anydml::d3d12
