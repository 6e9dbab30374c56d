// A project of its own: finds the package, creates a device, asks for its level.
#include <DirectML.h>
#include <anydml.h>
#include <dxgi1_6.h>
#include <wrl/client.h>

#include <cstdio>

using Microsoft::WRL::ComPtr;

int main() {
  ComPtr<IDXGIFactory4> factory;
  ComPtr<IDXGIAdapter1> adapter;
  ComPtr<ID3D12Device> d3d12;
  ComPtr<IDMLDevice> dml;
  if (FAILED(CreateDXGIFactory1(IID_PPV_ARGS(&factory))) || FAILED(factory->EnumAdapters1(0, &adapter)) ||
      FAILED(D3D12CreateDevice(adapter.Get(), D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&d3d12))) ||
      FAILED(DMLCreateDevice1(d3d12.Get(), DML_CREATE_DEVICE_FLAG_NONE, DML_FEATURE_LEVEL_5_0,
                              IID_PPV_ARGS(&dml)))) {
    std::fprintf(stderr, "%s\n", AnyDmlGetLastErrorMessage());
    return 1;
  }
  const DML_FEATURE_LEVEL levels[] = {DML_FEATURE_LEVEL_1_0, DML_FEATURE_LEVEL_6_4};
  DML_FEATURE_QUERY_FEATURE_LEVELS query = {2, levels};
  DML_FEATURE_DATA_FEATURE_LEVELS data = {};
  if (FAILED(
          dml->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, sizeof(query), &query, sizeof(data), &data))) {
    return 1;
  }
  std::printf("AnyDML %s, feature level 0x%x\n", AnyDmlGetVersion(), data.MaxSupportedFeatureLevel);
  return data.MaxSupportedFeatureLevel == DML_FEATURE_LEVEL_6_4 ? 0 : 1;
}
