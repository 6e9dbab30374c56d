// In the style of an execution provider: DirectML.h before all others, adapters through DXCore with names
// that older DirectX-Headers lack, and the declarations that windows.h would have provided.
#include <DirectML.h>
#include <guiddef.h>

#include <algorithm>

#include <dxcore.h>
#include <dxcore_interface.h>
#include <d3d12sdklayers.h>
#include <dxgi1_6.h>
#include <dxgiformat.h>
#include <wil/result.h>
#include <wrl.h>

using Microsoft::WRL::ComPtr;

ComPtr<ID3D12Device> CreateDevice() {
  ComPtr<IDXCoreAdapterFactory> factory;
  if (FAILED(DXCoreCreateAdapterFactory(factory.GetAddressOf()))) return {};
  ComPtr<IDXCoreAdapterList> list;
  const GUID kinds[] = {DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML};
  factory->CreateAdapterList(1, kinds, list.GetAddressOf());
  const DXCoreAdapterPreference order[] = {DXCoreAdapterPreference::HighPerformance};
  list->Sort(1, order);
  ComPtr<IDXCoreAdapter> adapter;
  list->GetAdapter(0, adapter.GetAddressOf());
  const bool npu = adapter->IsAttributeSupported(DXCORE_HARDWARE_TYPE_ATTRIBUTE_NPU);
  ComPtr<IDXCoreAdapterFactory1> factory1;
  if (SUCCEEDED(factory.As(&factory1))) {
    factory1->CreateAdapterListByWorkload(
        DXCoreWorkload::MachineLearning, DXCoreRuntimeFilterFlags::D3D12,
        DXCoreHardwareTypeFilterFlags::GPU | DXCoreHardwareTypeFilterFlags::NPU,
        list.ReleaseAndGetAddressOf());
  }
  ComPtr<ID3D12Device> device;
  D3D12CreateDevice(adapter.Get(), npu ? D3D_FEATURE_LEVEL_1_0_GENERIC : D3D_FEATURE_LEVEL_1_0_CORE,
                    IID_PPV_ARGS(&device));
  return device;
}

bool CustomHeaps(ID3D12Device* device) {
  D3D12_FEATURE_DATA_D3D12_OPTIONS19 options = {};
  return SUCCEEDED(device->CheckFeatureSupport(D3D12_FEATURE_D3D12_OPTIONS19, &options, sizeof(options))) &&
         options.ComputeOnlyCustomHeapSupported;
}

UINT MaxLevel(IDMLDevice* device) {
  const DML_FEATURE_LEVEL levels[] = {DML_FEATURE_LEVEL_1_0, DML_FEATURE_LEVEL_5_0, DML_FEATURE_LEVEL_6_4};
  DML_FEATURE_QUERY_FEATURE_LEVELS query = {ARRAYSIZE(levels), levels};
  DML_FEATURE_DATA_FEATURE_LEVELS data = {};
  const HRESULT hr =
      device->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, sizeof(query), &query, sizeof(data), &data);
  return hr == DXGI_ERROR_SDK_COMPONENT_MISSING ? 0 : static_cast<UINT>(data.MaxSupportedFeatureLevel);
}

// The constants have the type of the variables that they are compared with.
UINT64 AlignedSize(UINT64 size, UINT alignment) {
  const UINT least = std::max(alignment, DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT);
  return (size + least - 1) / least * least;
}

HRESULT ClassifyError(DWORD error, float value) {
  HRESULT hr = S_OK;
  switch (error) {
    case ERROR_CANCELLED:
      hr = E_ABORT;
      __fallthrough;
    case ERROR_NOT_FOUND:
    case ERROR_INTERNAL_ERROR:
    case ERROR_FILE_CORRUPT:
    case ERROR_NO_UNICODE_TRANSLATION:
      return hr;
  }
  return value < FLT_MAX ? S_FALSE : ERROR_GRAPHICS_INVALID_DISPLAY_ADAPTER;
}

void CopyBytes(ID3D12Resource* resource, const byte* from, size_t size) {
  void* mapped = nullptr;
  THROW_IF_FAILED(resource->Map(0, nullptr, &mapped));
  std::copy(from, from + size, static_cast<byte*>(mapped));
  wil::unique_handle event(CreateEvent(nullptr, FALSE, FALSE, nullptr));
  THROW_LAST_ERROR_IF(!event);
}

// NPUs: compute, but no graphics.
bool IsNpu(IDXCoreAdapter* adapter) {
  const bool compute = adapter->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE) ||
                       adapter->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML);
  return compute && !adapter->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS);
}

void DrainMessages(ID3D12Device* device) {
  ComPtr<ID3D12InfoQueue> queue;
  if (FAILED(device->QueryInterface(IID_PPV_ARGS(&queue)))) return;
  ComPtr<ID3D12InfoQueue1> queue1;
  queue.As(&queue1);
}
