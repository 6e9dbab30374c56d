// Code that must compile whichever header came first; check_compile.cmake prepends the headers.
static_assert(sizeof(DML_BUFFER_TENSOR_DESC) == 48, "");

inline GUID IncludeOrderIids(IDMLDevice1** device, ID3D12Device** d3d12, IDXCoreAdapterFactory** dxcore,
                             IDXGIFactory4** dxgi) {
  DMLCreateDevice1(*d3d12, DML_CREATE_DEVICE_FLAG_NONE, DML_FEATURE_LEVEL_6_4, IID_PPV_ARGS(device));
  D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(d3d12));
  DXCoreCreateAdapterFactory(dxcore);
  CreateDXGIFactory1(IID_PPV_ARGS(dxgi));
  Microsoft::WRL::ComPtr<IDMLBindingTable> table;
  table.As(&table);
  CD3DX12_HEAP_PROPERTIES heap(D3D12_HEAP_TYPE_DEFAULT);
  UNREFERENCED_PARAMETER(heap);
  LARGE_INTEGER number = {};
  UNREFERENCED_PARAMETER(number.HighPart);
  return uuidof<IDMLCommandRecorder>();
}
WINADAPTER_IID(IDMLCommandRecorder, 0xe6857a76, 0x2e3e, 0x4fdd, 0xbf, 0xf4, 0x5d, 0x2b, 0xa1, 0x0f, 0xb4,
               0x53);
