// The functions behind the exports of libd3d12, libdxcore and libdxgi. These libraries only export names; the
// code is in libanydml, so that each recognises the others' objects.
#pragma once

#include <d3d12.h>

#define ANYDML_INTERNAL_EXPORT __attribute__((visibility("default")))

namespace anydml {

ANYDML_INTERNAL_EXPORT HRESULT CreateD3D12Device(IUnknown* adapter, D3D_FEATURE_LEVEL minimum, REFIID iid,
                                                 void** device);
ANYDML_INTERNAL_EXPORT HRESULT GetDebugInterface(REFIID iid, void** debug);
ANYDML_INTERNAL_EXPORT HRESULT GetInterface(REFCLSID clsid, REFIID iid, void** object);
ANYDML_INTERNAL_EXPORT HRESULT SerializeRootSignature(const D3D12_ROOT_SIGNATURE_DESC* desc,
                                                      D3D_ROOT_SIGNATURE_VERSION version, ID3DBlob** blob,
                                                      ID3DBlob** error);
ANYDML_INTERNAL_EXPORT HRESULT SerializeVersionedRootSignature(
    const D3D12_VERSIONED_ROOT_SIGNATURE_DESC* desc, ID3DBlob** blob, ID3DBlob** error);
ANYDML_INTERNAL_EXPORT HRESULT EnableExperimentalFeatures(UINT count, const IID* iids, void* structs,
                                                          UINT* struct_sizes);
ANYDML_INTERNAL_EXPORT HRESULT CreateDXCoreFactory(REFIID iid, void** factory);
ANYDML_INTERNAL_EXPORT HRESULT CreateDXGIFactory(UINT flags, REFIID iid, void** factory);

}  // namespace anydml
