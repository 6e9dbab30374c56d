#include <set>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

using DeviceTest = D3D12Test;
using DeviceCreationTest = NoLeakTest;

TEST_F(DeviceCreationTest, AcceptsComputeLevelsAnd11) {
  for (const auto level :
       {D3D_FEATURE_LEVEL_1_0_GENERIC, D3D_FEATURE_LEVEL_1_0_CORE, D3D_FEATURE_LEVEL_11_0}) {
    Ptr<ID3D12Device> device;
    EXPECT_EQ(D3D12CreateDevice(nullptr, level, IID_PPV_ARGS(&device)), S_OK) << level;
  }
}

TEST_F(DeviceCreationTest, RefusesHigherAndUnknownLevels) {
  Ptr<ID3D12Device> device;
  EXPECT_EQ(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_12_0, IID_PPV_ARGS(&device)),
            DXGI_ERROR_UNSUPPORTED);
  EXPECT_TRUE(LastErrorHas("MinimumFeatureLevel"));
  EXPECT_EQ(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_9_1, IID_PPV_ARGS(&device)), E_INVALIDARG);
  EXPECT_EQ(D3D12CreateDevice(nullptr, static_cast<D3D_FEATURE_LEVEL>(7), IID_PPV_ARGS(&device)),
            E_INVALIDARG);
  EXPECT_FALSE(device);
}

TEST_F(DeviceCreationTest, NullOutputOnlyTests) {
  EXPECT_EQ(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, __uuidof(ID3D12Device), nullptr), S_FALSE);
}

TEST_F(DeviceCreationTest, UnknownInterface) {
  void* object = this;
  EXPECT_EQ(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, __uuidof(ID3D12Fence), &object),
            E_NOINTERFACE);
  EXPECT_EQ(object, nullptr);
}

TEST_F(DeviceCreationTest, ForeignAdapterIsRefused) {
  Ptr<ID3D12Device> device, other;
  ASSERT_EQ(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)), S_OK);
  EXPECT_EQ(D3D12CreateDevice(device.get(), D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&other)), E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("pAdapter"));
}

TEST_F(DeviceCreationTest, OneDevicePerAdapterWhileItLives) {
  const auto first = CreateDevice();
  const auto second = CreateDevice();
  EXPECT_EQ(first.get(), second.get());
}

TEST_F(DeviceCreationTest, RemovedDeviceIsNotGivenOutAgain) {
  const auto first = CreateDevice();
  first->RemoveDevice();
  const auto second = CreateDevice();
  EXPECT_NE(first.get(), second.get());
  EXPECT_EQ(second->GetDeviceRemovedReason(), S_OK);
}

// There is no background processing: requests complete immediately.
TEST_F(DeviceTest, BackgroundProcessingMode) {
  BOOL further = TRUE;
  EXPECT_EQ(
      device()->SetBackgroundProcessingMode(D3D12_BACKGROUND_PROCESSING_MODE_DISABLE_PROFILING_BY_SYSTEM,
                                            D3D12_MEASUREMENTS_ACTION_KEEP_ALL, nullptr, &further),
      S_OK);
  EXPECT_EQ(further, FALSE);
  const HANDLE event = CreateEvent(nullptr, FALSE, FALSE, nullptr);
  EXPECT_EQ(device()->SetBackgroundProcessingMode(D3D12_BACKGROUND_PROCESSING_MODE_ALLOWED,
                                                  D3D12_MEASUREMENTS_ACTION_COMMIT_RESULTS, event, nullptr),
            S_OK);
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
  CloseHandle(event);
  const HANDLE no_event = reinterpret_cast<HANDLE>(uintptr_t{1});  // standard output
  EXPECT_EQ(device()->SetBackgroundProcessingMode({}, {}, no_event, nullptr), E_HANDLE);
  EXPECT_TRUE(LastErrorHas("SetBackgroundProcessingMode: hEvent is not an event"));
  EXPECT_EQ(device()->SetBackgroundProcessingMode(static_cast<D3D12_BACKGROUND_PROCESSING_MODE>(4), {},
                                                  nullptr, nullptr),
            E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("Mode is 4"));
  EXPECT_EQ(
      device()->SetBackgroundProcessingMode({}, static_cast<D3D12_MEASUREMENTS_ACTION>(9), nullptr, nullptr),
      E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("MeasurementsAction is 9"));
}

TEST_F(DeviceTest, Basics) {
  EXPECT_EQ(device()->GetNodeCount(), 1u);
  const LUID luid = device()->GetAdapterLuid();
  EXPECT_TRUE(luid.LowPart != 0 || luid.HighPart != 0);
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
  EXPECT_EQ(device()->SetStablePowerState(TRUE), S_OK);
  UINT count = 5;
  EXPECT_EQ(device()->EnumerateMetaCommands(&count, nullptr), S_OK);
  EXPECT_EQ(count, 0u);
}

TEST_F(DeviceTest, GraphicsIsNotImplementedAndSaysSo) {
  void* object = this;
  EXPECT_EQ(device()->CreateComputePipelineState(nullptr, __uuidof(ID3D12PipelineState), &object), E_NOTIMPL);
  EXPECT_EQ(object, nullptr);
  EXPECT_TRUE(LastErrorHas("CreateComputePipelineState"));
  EXPECT_TRUE(HasMessage(device(), "CreateComputePipelineState"));
  EXPECT_EQ(device()->CreateReservedResource(nullptr, D3D12_RESOURCE_STATE_COMMON, nullptr,
                                             __uuidof(ID3D12Resource), &object),
            E_NOTIMPL);
  device()->CreateRenderTargetView(nullptr, nullptr, {});
  EXPECT_TRUE(HasMessage(device(), "CreateRenderTargetView"));
}

// Every feature in the headers, with its size.
template <typename T>
HRESULT Check(ID3D12Device* device, D3D12_FEATURE feature, T* data) {
  std::vector<char> larger(sizeof(T) + 4);
  EXPECT_EQ(device->CheckFeatureSupport(feature, larger.data(), sizeof(T) + 4), E_INVALIDARG) << feature;
  EXPECT_EQ(device->CheckFeatureSupport(feature, larger.data(), sizeof(T) - 1), E_INVALIDARG) << feature;
  EXPECT_EQ(device->CheckFeatureSupport(feature, larger.data(), 0), E_INVALIDARG) << feature;
  EXPECT_EQ(device->CheckFeatureSupport(feature, nullptr, sizeof(T)), E_INVALIDARG) << feature;
  return device->CheckFeatureSupport(feature, data, sizeof(T));
}

TEST_F(DeviceTest, FeaturesThatClientsAskFor) {
  D3D12_FEATURE_DATA_ARCHITECTURE architecture{};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_ARCHITECTURE, &architecture), S_OK);
  D3D12_FEATURE_DATA_ARCHITECTURE1 architecture1{};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_ARCHITECTURE1, &architecture1), S_OK);
  EXPECT_EQ(architecture.UMA, architecture1.UMA);
  architecture.NodeIndex = 1;
  EXPECT_EQ(Check(device(), D3D12_FEATURE_ARCHITECTURE, &architecture), E_INVALIDARG);
  D3D12_FEATURE_DATA_D3D12_OPTIONS options{};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_D3D12_OPTIONS, &options), S_OK);
  EXPECT_EQ(options.TiledResourcesTier, D3D12_TILED_RESOURCES_TIER_NOT_SUPPORTED);
  EXPECT_EQ(options.ResourceHeapTier, D3D12_RESOURCE_HEAP_TIER_2);
  D3D12_FEATURE_DATA_D3D12_OPTIONS1 options1{};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_D3D12_OPTIONS1, &options1), S_OK);
  D3D12_FEATURE_DATA_D3D12_OPTIONS4 options4{};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_D3D12_OPTIONS4, &options4), S_OK);
  D3D12_FEATURE_DATA_D3D12_OPTIONS19 options19{};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_D3D12_OPTIONS19, &options19), S_OK);
  EXPECT_EQ(options19.ComputeOnlyCustomHeapSupported, TRUE);
  D3D12_FEATURE_DATA_GPU_VIRTUAL_ADDRESS_SUPPORT addresses{};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_GPU_VIRTUAL_ADDRESS_SUPPORT, &addresses), S_OK);
  EXPECT_GE(addresses.MaxGPUVirtualAddressBitsPerResource, 32u);
}

TEST_F(DeviceTest, FeaturesWithInputs) {
  D3D12_FEATURE_DATA_SHADER_MODEL model = {D3D_SHADER_MODEL_6_6};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_SHADER_MODEL, &model), S_OK);
  EXPECT_EQ(model.HighestShaderModel, D3D_SHADER_MODEL_5_1);
  D3D12_FEATURE_DATA_ROOT_SIGNATURE signature = {D3D_ROOT_SIGNATURE_VERSION_1_1};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_ROOT_SIGNATURE, &signature), S_OK);
  D3D12_FEATURE_DATA_COMMAND_QUEUE_PRIORITY priority = {D3D12_COMMAND_LIST_TYPE_COMPUTE,
                                                        D3D12_COMMAND_QUEUE_PRIORITY_HIGH, FALSE};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_COMMAND_QUEUE_PRIORITY, &priority), S_OK);
  EXPECT_EQ(priority.PriorityForTypeIsSupported, TRUE);
  D3D12_FEATURE_DATA_FORMAT_SUPPORT format = {DXGI_FORMAT_R32_FLOAT, {}, {}};
  EXPECT_EQ(Check(device(), D3D12_FEATURE_FORMAT_SUPPORT, &format), S_OK);
  EXPECT_EQ(format.Support1, D3D12_FORMAT_SUPPORT1_BUFFER);
}

TEST_F(DeviceTest, FeatureLevelsAnswersTheHighestOfTheList) {
  const D3D_FEATURE_LEVEL all[] = {D3D_FEATURE_LEVEL_1_0_GENERIC, D3D_FEATURE_LEVEL_1_0_CORE,
                                   D3D_FEATURE_LEVEL_11_0, D3D_FEATURE_LEVEL_12_0, D3D_FEATURE_LEVEL_12_1};
  D3D12_FEATURE_DATA_FEATURE_LEVELS levels = {5, all, {}};
  EXPECT_EQ(device()->CheckFeatureSupport(D3D12_FEATURE_FEATURE_LEVELS, &levels, sizeof(levels)), S_OK);
  EXPECT_EQ(levels.MaxSupportedFeatureLevel, D3D_FEATURE_LEVEL_11_0);
  levels.NumFeatureLevels = 2;
  EXPECT_EQ(device()->CheckFeatureSupport(D3D12_FEATURE_FEATURE_LEVELS, &levels, sizeof(levels)), S_OK);
  EXPECT_EQ(levels.MaxSupportedFeatureLevel, D3D_FEATURE_LEVEL_1_0_CORE);
  levels = {2, all + 3, {}};
  EXPECT_EQ(device()->CheckFeatureSupport(D3D12_FEATURE_FEATURE_LEVELS, &levels, sizeof(levels)),
            E_INVALIDARG);
  levels = {0, nullptr, {}};
  EXPECT_EQ(device()->CheckFeatureSupport(D3D12_FEATURE_FEATURE_LEVELS, &levels, sizeof(levels)),
            E_INVALIDARG);
}

TEST_F(DeviceTest, UnknownFeature) {
  char data[64] = {};
  for (const int feature : {-1, 9, 49, 1000}) {
    EXPECT_EQ(device()->CheckFeatureSupport(static_cast<D3D12_FEATURE>(feature), data, 4), E_INVALIDARG)
        << feature;
  }
}

TEST_F(DeviceTest, PrivateDataAndNames) {
  const GUID key = {1, 2, 3, {}};
  const uint32_t value = 42;
  EXPECT_EQ(device()->SetPrivateData(key, sizeof(value), &value), S_OK);
  uint32_t read = 0;
  UINT size = sizeof(read);
  EXPECT_EQ(device()->GetPrivateData(key, &size, &read), S_OK);
  EXPECT_EQ(read, 42u);
  EXPECT_EQ(device()->SetName(L"the device"), S_OK);
  const auto fence = CreateFence(device());
  EXPECT_EQ(fence->SetPrivateDataInterface(key, device()), S_OK);
  IUnknown* stored = nullptr;
  size = sizeof(stored);
  EXPECT_EQ(fence->GetPrivateData(key, &size, &stored), S_OK);
  EXPECT_EQ(stored, device());
  stored->Release();
}

TEST_F(DeviceTest, ResidencyOnlyChecksItsArguments) {
  const auto buffer = Buffer(64);
  const auto fence = CreateFence(device());
  ID3D12Pageable* object = buffer.get();
  EXPECT_EQ(device()->MakeResident(1, &object), S_OK);
  EXPECT_EQ(device()->Evict(1, &object), S_OK);
  const auto priority = D3D12_RESIDENCY_PRIORITY_HIGH;
  EXPECT_EQ(device()->SetResidencyPriority(1, &object, &priority), S_OK);
  EXPECT_EQ(device()->EnqueueMakeResident(D3D12_RESIDENCY_FLAG_NONE, 1, &object, fence.get(), 3), S_OK);
  EXPECT_EQ(fence->GetCompletedValue(), 3u);
  object = nullptr;
  EXPECT_EQ(device()->MakeResident(1, &object), E_INVALIDARG);
  EXPECT_EQ(device()->Evict(0, nullptr), E_INVALIDARG);
}

TEST_F(NoLeakTest, ExperimentalFeaturesAndRootSignatures) {
  EXPECT_EQ(D3D12EnableExperimentalFeatures(0, nullptr, nullptr, nullptr), S_OK);
  const GUID unknown = {9, 9, 9, {}};
  EXPECT_EQ(D3D12EnableExperimentalFeatures(1, &unknown, nullptr, nullptr), E_NOINTERFACE);
  EXPECT_EQ(D3D12EnableExperimentalFeatures(1, nullptr, nullptr, nullptr), E_INVALIDARG);
  Ptr<ID3DBlob> blob, error;
  EXPECT_EQ(D3D12SerializeRootSignature(nullptr, D3D_ROOT_SIGNATURE_VERSION_1, &blob, &error), E_NOTIMPL);
  EXPECT_FALSE(blob);
  ASSERT_TRUE(error);
  EXPECT_EQ(std::strlen(static_cast<const char*>(error->GetBufferPointer())) + 1, error->GetBufferSize());
  EXPECT_EQ(D3D12SerializeVersionedRootSignature(nullptr, nullptr, nullptr), E_NOTIMPL);
}

}  // namespace
}  // namespace anydml::testing
