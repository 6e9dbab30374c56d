// In the style of a Python extension written for Windows: Windows.h first, the
// DXGI headers, initguid.h, DirectML in the middle.
#include <Windows.h>

#include <d3d12.h>
#include <dxgi1_5.h>
#include <dxgi1_6.h>
#include <dxgidebug.h>

#include <initguid.h>
#include <wrl/client.h>
#include <wrl/implements.h>

#define DML_TARGET_VERSION_USE_LATEST 1
#include <DirectML.h>

#define IID_GRAPHICS_PPV_ARGS IID_PPV_ARGS
#include "d3dx12.h"

DEFINE_GUID(EXTENSION_GUID, 0x01234567, 0x89ab, 0xcdef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef);

using Microsoft::WRL::ComPtr;

ComPtr<IDXGIAdapter1> PickAdapter(bool warp) {
  ComPtr<IDXGIFactory6> factory;
  if (FAILED(CreateDXGIFactory2(0, IID_PPV_ARGS(&factory)))) return nullptr;
  ComPtr<IDXGIAdapter1> adapter;
  if (warp) {
    factory->EnumWarpAdapter(IID_PPV_ARGS(&adapter));
    return adapter;
  }
  factory->EnumAdapterByGpuPreference(0, DXGI_GPU_PREFERENCE_HIGH_PERFORMANCE, IID_PPV_ARGS(&adapter));
  DXGI_ADAPTER_DESC1 desc = {};
  adapter->GetDesc1(&desc);
  if (desc.Flags & DXGI_ADAPTER_FLAG_SOFTWARE) return nullptr;
  ComPtr<IDXGIAdapter3> adapter3;
  DXGI_QUERY_VIDEO_MEMORY_INFO info = {};
  if (SUCCEEDED(adapter.As(&adapter3))) {
    adapter3->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &info);
  }
  return adapter;
}

byte* Scratch(size_t size) {
  void* memory = VirtualAlloc(nullptr, size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
  if (memory == nullptr) SetLastError(ERROR_OUTOFMEMORY);
  return static_cast<byte*>(memory);
}

HRESULT Wait(ID3D12Fence* fence, UINT64 value) {
  if (fence->GetCompletedValue() == UINT64_MAX) {
    return DXGI_ERROR_DEVICE_REMOVED;
  }
  HANDLE event = CreateEventEx(nullptr, nullptr, CREATE_EVENT_MANUAL_RESET, EVENT_ALL_ACCESS);
  if (event == nullptr) return HRESULT_FROM_WIN32(GetLastError());
  HRESULT hr = fence->SetEventOnCompletion(value, event);
  if (SUCCEEDED(hr)) WaitForSingleObject(event, INFINITE);
  CloseHandle(event);
  return hr;
}
