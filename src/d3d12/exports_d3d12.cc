// The exported names of libd3d12.so; libanydml.so has the code.
#include "d3d12/entry_points.h"

#define ANYDML_EXPORT extern "C" __attribute__((visibility("default")))

ANYDML_EXPORT HRESULT WINAPI D3D12CreateDevice(IUnknown* adapter, D3D_FEATURE_LEVEL minimum, REFIID iid,
                                               void** device) {
  return anydml::CreateD3D12Device(adapter, minimum, iid, device);
}

ANYDML_EXPORT HRESULT WINAPI D3D12GetDebugInterface(REFIID iid, void** debug) {
  return anydml::GetDebugInterface(iid, debug);
}

ANYDML_EXPORT HRESULT WINAPI D3D12GetInterface(REFCLSID clsid, REFIID iid, void** object) {
  return anydml::GetInterface(clsid, iid, object);
}

ANYDML_EXPORT HRESULT WINAPI D3D12SerializeRootSignature(const D3D12_ROOT_SIGNATURE_DESC* desc,
                                                         D3D_ROOT_SIGNATURE_VERSION version, ID3DBlob** blob,
                                                         ID3DBlob** error) {
  return anydml::SerializeRootSignature(desc, version, blob, error);
}

ANYDML_EXPORT HRESULT WINAPI D3D12SerializeVersionedRootSignature(
    const D3D12_VERSIONED_ROOT_SIGNATURE_DESC* desc, ID3DBlob** blob, ID3DBlob** error) {
  return anydml::SerializeVersionedRootSignature(desc, blob, error);
}

ANYDML_EXPORT HRESULT WINAPI D3D12EnableExperimentalFeatures(UINT count, const IID* iids, void* structs,
                                                             UINT* struct_sizes) {
  return anydml::EnableExperimentalFeatures(count, iids, structs, struct_sizes);
}
