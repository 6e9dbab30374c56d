// CreateOperator with arbitrary descriptions of all operators, at every feature level: the result must always
// be well-defined, and accepted operators must compile.
#include "fuzz.h"

#include <array>

#include <DirectML.h>
#include <anydml.h>
#include <wrl/client.h>

#include "base/status.h"
#include "hostile_desc.h"

namespace anydml::fuzz {
namespace {

using Microsoft::WRL::ComPtr;

constexpr FeatureLevel kLevels[] = {0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100, 0x5000,
                                    0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400};

ComPtr<IDMLDevice> CreateDevice(FeatureLevel level) {
  ComPtr<ID3D12Device> d3d;
  ComPtr<IDMLDevice> device;
  setenv("ANYDML_FEATURE_LEVEL", FeatureLevelName(level).c_str(), 1);
  HRESULT result = D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&d3d));
  if (SUCCEEDED(result))
    result = DMLCreateDevice(d3d.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&device));
  unsetenv("ANYDML_FEATURE_LEVEL");
  Require(SUCCEEDED(result), StrCat("no device: ", AnyDmlGetLastErrorMessage()));
  return device;
}

// One device per level for the life of the process.
IDMLDevice* DeviceAt(size_t index) {
  static auto* const devices = [] {
    auto* made = new std::array<ComPtr<IDMLDevice>, std::size(kLevels)>;
    for (size_t i = 0; i < made->size(); ++i) (*made)[i] = CreateDevice(kLevels[i]);
    return made;
  }();
  return (*devices)[index].Get();
}

void CheckFailure(HRESULT result, const char* call) {
  Require(result == E_INVALIDARG || result == DXGI_ERROR_UNSUPPORTED || result == E_OUTOFMEMORY,
          StrCat(call, " returned ", static_cast<uint32_t>(result), ": ", AnyDmlGetLastErrorMessage()));
  Require(*AnyDmlGetLastErrorMessage() != '\0', StrCat(call, " failed without a sentence"));
}

void CheckProperties(const DML_BINDING_PROPERTIES& properties) {
  Require(properties.RequiredDescriptorCount > 0, "an operator without descriptors");
  Require(properties.TemporaryResourceSize % 4 == 0 && properties.PersistentResourceSize % 4 == 0,
          "sizes that are no multiples of 4");
}

void Compile(ByteSource& source, IDMLDevice* device, IDMLOperator* op) {
  // All values of the type: one more bit than there were flags originally.
  const auto flags = static_cast<DML_EXECUTION_FLAGS>(source.Between(0, 7));
  ComPtr<IDMLCompiledOperator> compiled;
  const HRESULT result = device->CompileOperator(op, flags, IID_PPV_ARGS(&compiled));
  if (FAILED(result)) return CheckFailure(result, "CompileOperator");
  CheckProperties(compiled->GetBindingProperties());
  Require(*AnyDmlGetImplementation(compiled.Get()) != '\0', "compiled without an implementation");
  IDMLCompiledOperator* const operators[] = {compiled.Get()};
  ComPtr<IDMLOperatorInitializer> initializer;
  const HRESULT initialized = device->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer));
  if (FAILED(initialized)) return CheckFailure(initialized, "CreateOperatorInitializer");
  Require(initializer->GetBindingProperties().TemporaryResourceSize % 4 == 0,
          "a size that is no multiple of 4");
}

void Run(ByteSource source) {
  const size_t level = source.OneIn(3) ? source.Between(0, std::size(kLevels) - 1) : std::size(kLevels) - 1;
  IDMLDevice* const device = DeviceAt(level);
  const uint64_t objects = AnyDmlGetLiveObjectCount();
  testing::DescBuilder builder = HostileDesc(source, kLevels[level]);
  AnyDmlClearLastError();
  ComPtr<IDMLOperator> op;
  const HRESULT result = device->CreateOperator(builder.Build(), IID_PPV_ARGS(&op));
  Require(SUCCEEDED(result) == (op != nullptr), "CreateOperator: the result and the object disagree");
  if (FAILED(result)) {
    CheckFailure(result, "CreateOperator");
  } else {
    Compile(source, device, op.Get());
  }
  op.Reset();
  Require(AnyDmlGetLiveObjectCount() == objects, "an object was left behind");
  Require(device->GetDeviceRemovedReason() == S_OK, "a description removed the device");
}

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anydml::fuzz::Run({data, size});
  return 0;
}
