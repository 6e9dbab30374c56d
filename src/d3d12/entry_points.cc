#include "d3d12/entry_points.h"

#include <dxgi1_6.h>

#include "base/report.h"
#include "com/guard.h"
#include "d3d12/adapters/adapter_kind.h"
#include "d3d12/adapters/adapter_lookup.h"
#include "d3d12/adapters/dxcore_factory.h"
#include "d3d12/adapters/dxgi_factory.h"
#include "d3d12/blob.h"
#include "d3d12/device/debug.h"
#include "d3d12/device/device_registry.h"
#include "d3d12/device/feature_levels.h"

namespace anydml {
namespace {

// Creates a factory, unless an environment variable about adapters is invalid.
template <typename Factory, typename... Arguments>
HRESULT CreateFactory(const char* function, REFIID iid, void** factory, Arguments... arguments) {
  *factory = nullptr;
  Status status = d3d12::CheckAdapterKinds();
  if (status.ok()) status = CheckBackendVariables();
  if (!status.ok()) return Fail(ToHresult(status.code()), StrCat(function, ": ", status.message()));
  return CreateComObject<Factory>(iid, factory, arguments...);
}

HRESULT NoRootSignatures(const char* function, ID3DBlob** blob, ID3DBlob** error) {
  return Guard([&] {
    const std::string message =
        StrCat(function, ": not implemented; this is a compute-only device without shaders");
    if (blob != nullptr) *blob = nullptr;
    if (error != nullptr) *error = new d3d12::TextBlob(message);
    return Fail(E_NOTIMPL, message);
  });
}

}  // namespace

HRESULT CreateD3D12Device(IUnknown* adapter, D3D_FEATURE_LEVEL minimum, REFIID iid, void** device) {
  return Guard([&] {
    if (device != nullptr) *device = nullptr;
    if (!d3d12::IsFeatureLevel(minimum)) {
      return Fail(E_INVALIDARG,
                  StrCat("D3D12CreateDevice: MinimumFeatureLevel is ", minimum, ", which is unknown"));
    }
    if (minimum > d3d12::kMaximumFeatureLevel) {
      return Fail(DXGI_ERROR_UNSUPPORTED,
                  StrCat("D3D12CreateDevice: MinimumFeatureLevel is ", minimum, "; this device has at most ",
                         d3d12::kMaximumFeatureLevel, " (11_0)"));
    }
    if (const Status& status = CheckBackendVariables(); !status.ok()) {
      return Fail(ToHresult(status.code()), StrCat("D3D12CreateDevice: ", status.message()));
    }
    Backend* const backend = adapter == nullptr ? Backends().front() : d3d12::BackendFromAdapter(adapter);
    if (backend == nullptr) {
      return Fail(E_INVALIDARG, "D3D12CreateDevice: pAdapter is not an adapter of this implementation");
    }
    if (device == nullptr) return S_FALSE;
    return d3d12::OpenDevice(*backend, d3d12::DebugLayerRequested(), iid, device);
  });
}

HRESULT GetDebugInterface(REFIID iid, void** debug) {
  return Guard([&] { return CreateComObject<d3d12::Debug>(iid, debug); });
}

HRESULT GetInterface(REFCLSID clsid, REFIID iid, void** object) {
  constexpr GUID kDebugClass = {0xf2352aeb, 0xdd84, 0x49fe, {0xb9, 0x7b, 0xa9, 0xdc, 0xfd, 0xcc, 0x1b, 0x4f}};
  if (clsid == kDebugClass) return GetDebugInterface(iid, object);
  if (object != nullptr) *object = nullptr;
  return Guard([&] { return Fail(E_NOINTERFACE, "D3D12GetInterface: only CLSID_D3D12Debug is known"); });
}

HRESULT SerializeRootSignature(const D3D12_ROOT_SIGNATURE_DESC*, D3D_ROOT_SIGNATURE_VERSION, ID3DBlob** blob,
                               ID3DBlob** error) {
  return NoRootSignatures("D3D12SerializeRootSignature", blob, error);
}

HRESULT SerializeVersionedRootSignature(const D3D12_VERSIONED_ROOT_SIGNATURE_DESC*, ID3DBlob** blob,
                                        ID3DBlob** error) {
  return NoRootSignatures("D3D12SerializeVersionedRootSignature", blob, error);
}

HRESULT EnableExperimentalFeatures(UINT count, const IID* iids, void*, UINT*) {
  // D3D12ComputeOnlyDevices: the experimental feature that programs enabled for such devices before they
  // became official.
  constexpr GUID kComputeOnlyDevices = {
      0x50f7ab08, 0x4b6d, 0x4e14, {0x89, 0xa5, 0x5d, 0x16, 0xcd, 0x27, 0x25, 0x94}};
  return Guard([&] {
    if (count != 0 && iids == nullptr)
      return Fail(E_INVALIDARG, "D3D12EnableExperimentalFeatures: pIIDs is null");
    for (UINT i = 0; i < count; ++i) {
      if (iids[i] != kComputeOnlyDevices) {
        return Fail(E_NOINTERFACE,
                    StrCat("D3D12EnableExperimentalFeatures: pIIDs[", i, "] is not a known feature"));
      }
    }
    return S_OK;
  });
}

HRESULT CreateDXCoreFactory(REFIID iid, void** factory) {
  return Guard([&] {
    if (factory == nullptr) return Fail(E_POINTER, "DXCoreCreateAdapterFactory: ppvFactory is null");
    return CreateFactory<d3d12::DxCoreFactory>("DXCoreCreateAdapterFactory", iid, factory);
  });
}

HRESULT CreateDXGIFactory(UINT flags, REFIID iid, void** factory) {
  return Guard([&] {
    if (factory == nullptr) return Fail(DXGI_ERROR_INVALID_CALL, "CreateDXGIFactory: ppFactory is null");
    return CreateFactory<d3d12::DxgiFactory>("CreateDXGIFactory", iid, factory, flags);
  });
}

}  // namespace anydml
