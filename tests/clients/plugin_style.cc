// In the style of a framework plugin written for DirectX-Headers on WSL: headers by their full names,
// winadapter first, its own IIDs for IDML*, entry points through dlsym, objects from Microsoft::WRL::Base.
#include <wsl/winadapter.h>

#include <directx/d3d12.h>
#include <wrl/client.h>
#include <wrl/implements.h>

#include <directx/dxcore.h>
#include "dxcore.h"

#include <dlfcn.h>

#define DML_TARGET_VERSION_USE_LATEST 1
#include "DirectMLConfig.h"
#if DIRECTML_PREVIEW_BUILD
#error "not a preview"
#endif
#include "DirectML.h"
#include "directx/d3dx12.h"
#include "dxguids/dxguids.h"

// clang-format off
WINADAPTER_IID(IDMLObject, 0xc8263aac, 0x9e0c, 0x4a2d, 0x9b, 0x8e, 0x00, 0x75, 0x21, 0xa3, 0x31, 0x7c);
WINADAPTER_IID(IDMLDevice, 0x6dbd6437, 0x96fd, 0x423f, 0xa9, 0x8c, 0xae, 0x5e, 0x7c, 0x2a, 0x57, 0x3f);
WINADAPTER_IID(IDMLDeviceChild, 0x27e83142, 0x8165, 0x49e3, 0x97, 0x4e, 0x2f, 0xd6, 0x6e, 0x4c, 0xb6, 0x9d);
WINADAPTER_IID(IDMLPageable, 0xb1ab0825, 0x4542, 0x4a4b, 0x86, 0x17, 0x6d, 0xde, 0x6e, 0x8f, 0x62, 0x01);
WINADAPTER_IID(IDMLOperator, 0x26caae7a, 0x3081, 0x4633, 0x95, 0x81, 0x22, 0x6f, 0xbe, 0x57, 0x69, 0x5d);
WINADAPTER_IID(IDMLDispatchable, 0xdcb821a8, 0x1039, 0x441e, 0x9f, 0x1c, 0xb1, 0x75, 0x9c, 0x2f, 0x3c, 0xec);
WINADAPTER_IID(IDMLCompiledOperator, 0x6b15e56a, 0xbf5c, 0x4902, 0x92, 0xd8, 0xda, 0x3a, 0x65, 0x0a, 0xfe, 0xa4);
WINADAPTER_IID(IDMLOperatorInitializer, 0x427c1113, 0x435c, 0x469c, 0x86, 0x76, 0x4d, 0x5d, 0xd0, 0x72, 0xf8, 0x13);
WINADAPTER_IID(IDMLBindingTable, 0x29c687dc, 0xde74, 0x4e3b, 0xab, 0x00, 0x11, 0x68, 0xf2, 0xfc, 0x3c, 0xfc);
WINADAPTER_IID(IDMLCommandRecorder, 0xe6857a76, 0x2e3e, 0x4fdd, 0xbf, 0xf4, 0x5d, 0x2b, 0xa1, 0x0f, 0xb4, 0x53);
WINADAPTER_IID(IDMLDebugDevice, 0x7d6f3ac9, 0x394a, 0x4ac3, 0x92, 0xa7, 0x39, 0x0c, 0xc5, 0x7a, 0x82, 0x17);
WINADAPTER_IID(IDMLDevice1, 0xa0884f9a, 0xd2be, 0x4355, 0xaa, 0x5d, 0x59, 0x01, 0x28, 0x1a, 0xd1, 0xd2);
// clang-format on

// A plugin's own interface still gets its IID from the same macro.
struct IPluginTag : IUnknown {
  virtual int STDMETHODCALLTYPE Tag() = 0;
};
WINADAPTER_IID(IPluginTag, 0x01234567, 0x89ab, 0xcdef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef);

using byte = unsigned char;

namespace plugin {
using namespace Microsoft::WRL;

class PluginTag : public Base<IPluginTag> {
 public:
  int STDMETHODCALLTYPE Tag() override { return 1; }
};

GUID TagIid() { return uuidof<IPluginTag>(); }

ComPtr<IDMLDevice> CreateDmlDevice(ID3D12Device* d3d12) {
  void* module = dlopen("libdirectml.so", RTLD_NOW);
  auto create = reinterpret_cast<decltype(&DMLCreateDevice)>(dlsym(module, "DMLCreateDevice"));
  ComPtr<IDMLDevice> device;
  if (FAILED(create(d3d12, DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&device)))) {
    return nullptr;
  }
  DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT query = {DML_TENSOR_DATA_TYPE_FLOAT16};
  DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT support = {};
  device->CheckFeatureSupport(DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, sizeof(query), &query, sizeof(support),
                              &support);
  return support.IsSupported ? device : nullptr;
}

ComPtr<IDXCoreAdapter> FirstAdapter() {
  ComPtr<IDXCoreAdapterFactory> factory;
  if (FAILED(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory)))) return {};
  ComPtr<IDXCoreAdapterList> list;
  const GUID attributes[] = {DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE};
  factory->CreateAdapterList(1, attributes, IID_PPV_ARGS(&list));
  ComPtr<IDXCoreAdapter> adapter;
  list->GetAdapter(0, IID_PPV_ARGS(&adapter));
  bool hardware = false;
  adapter->GetProperty(DXCoreAdapterProperty::IsHardware, &hardware);
  return adapter;
}

}  // namespace plugin
