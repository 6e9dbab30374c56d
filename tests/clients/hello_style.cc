// In the style of a first DirectML sample for Windows: wil, d3dx12, dxgi, and
// DirectML.h last.
#include <wil/result.h>
#include <wil/resource.h>

#include <vector>

#include "d3dx12.h"
#include <dxgi1_4.h>

#define DML_TARGET_VERSION_USE_LATEST
#include <DirectML.h>

using Microsoft::WRL::ComPtr;

ComPtr<ID3D12Device> CreateDevice() {
  ComPtr<ID3D12Debug> debug;
  if (SUCCEEDED(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)))) {
    debug->EnableDebugLayer();
  }
  ComPtr<IDXGIFactory4> factory;
  THROW_IF_FAILED(CreateDXGIFactory1(IID_PPV_ARGS(factory.GetAddressOf())));
  ComPtr<ID3D12Device> device;
  ComPtr<IDXGIAdapter> adapter;
  HRESULT hr = S_OK;
  for (UINT i = 0; hr != DXGI_ERROR_NOT_FOUND; ++i) {
    hr = factory->EnumAdapters(i, adapter.ReleaseAndGetAddressOf());
    if (FAILED(hr)) break;
    DXGI_ADAPTER_DESC desc = {};
    THROW_IF_FAILED(adapter->GetDesc(&desc));
    hr = D3D12CreateDevice(adapter.Get(), D3D_FEATURE_LEVEL_11_0,
                           IID_PPV_ARGS(device.ReleaseAndGetAddressOf()));
    if (SUCCEEDED(hr)) break;
  }
  return device;
}

void CloseExecuteWait(ID3D12Device* device, ID3D12CommandQueue* queue, ID3D12GraphicsCommandList* list) {
  THROW_IF_FAILED(list->Close());
  ID3D12CommandList* lists[] = {list};
  queue->ExecuteCommandLists(ARRAYSIZE(lists), lists);
  ComPtr<ID3D12Fence> fence;
  THROW_IF_FAILED(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
  wil::unique_handle event(::CreateEvent(nullptr, true, false, nullptr));
  THROW_LAST_ERROR_IF_NULL(event);
  THROW_IF_FAILED(queue->Signal(fence.Get(), 1));
  THROW_IF_FAILED(fence->SetEventOnCompletion(1, event.get()));
  THROW_HR_IF(E_FAIL, ::WaitForSingleObjectEx(event.get(), INFINITE, FALSE) != WAIT_OBJECT_0);
}

void CompileIdentity(ID3D12Device* d3d12) {
  ComPtr<IDMLDevice> device;
  THROW_IF_FAILED(DMLCreateDevice(d3d12, DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(device.GetAddressOf())));
  const UINT sizes[4] = {1, 2, 3, 4};
  DML_BUFFER_TENSOR_DESC buffer = {};
  buffer.DataType = DML_TENSOR_DATA_TYPE_FLOAT32;
  buffer.Flags = DML_TENSOR_FLAG_NONE;
  buffer.DimensionCount = _countof(sizes);
  buffer.Sizes = sizes;
  buffer.TotalTensorSizeInBytes = 96;
  DML_TENSOR_DESC tensor{DML_TENSOR_TYPE_BUFFER, &buffer};
  DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity{};
  identity.InputTensor = &tensor;
  identity.OutputTensor = &tensor;
  DML_OPERATOR_DESC desc{DML_OPERATOR_ELEMENT_WISE_IDENTITY, &identity};
  ComPtr<IDMLOperator> op;
  THROW_IF_FAILED(device->CreateOperator(&desc, IID_PPV_ARGS(&op)));
  ComPtr<IDMLCompiledOperator> compiled;
  THROW_IF_FAILED(device->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
  IDMLCompiledOperator* targets[] = {compiled.Get()};
  ComPtr<IDMLOperatorInitializer> initializer;
  THROW_IF_FAILED(device->CreateOperatorInitializer(ARRAYSIZE(targets), targets, IID_PPV_ARGS(&initializer)));
  const DML_BINDING_PROPERTIES properties = compiled->GetBindingProperties();
  CD3DX12_HEAP_PROPERTIES heap(D3D12_HEAP_TYPE_DEFAULT);
  CD3DX12_RESOURCE_DESC resource = CD3DX12_RESOURCE_DESC::Buffer(properties.TemporaryResourceSize,
                                                                 D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
  ComPtr<ID3D12Resource> temporary;
  THROW_IF_FAILED(d3d12->CreateCommittedResource(&heap, D3D12_HEAP_FLAG_NONE, &resource,
                                                 D3D12_RESOURCE_STATE_COMMON, nullptr,
                                                 IID_PPV_ARGS(&temporary)));
  DML_BUFFER_BINDING binding{temporary.Get(), 0, properties.TemporaryResourceSize};
  DML_BINDING_DESC binding_desc{DML_BINDING_TYPE_BUFFER, &binding};
  ComPtr<IDMLBindingTable> table;
  THROW_IF_FAILED(device->CreateBindingTable(nullptr, IID_PPV_ARGS(&table)));
  table->BindTemporaryResource(&binding_desc);
  ComPtr<IDMLDevice1> device1;
  THROW_IF_FAILED(device.As(&device1));
  OutputDebugStringA("compiled\n");
  OutputDebugStringW(L"compiled\n");
}
