#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

class DxCoreTest : public NoLeakTest {
 protected:
  void SetUp() override {
    NoLeakTest::SetUp();
    ASSERT_EQ(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory_)), S_OK);
    ASSERT_EQ(
        factory_->CreateAdapterList(1, &DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, IID_PPV_ARGS(&list_)),
        S_OK);
    ASSERT_GE(list_->GetAdapterCount(), 1u);
    ASSERT_EQ(list_->GetAdapter(0, IID_PPV_ARGS(&adapter_)), S_OK);
  }
  void TearDown() override {
    adapter_.Reset();
    list_.Reset();
    factory_.Reset();
    NoLeakTest::TearDown();
  }
  template <typename T>
  T Property(DXCoreAdapterProperty property) {
    size_t size = 0;
    EXPECT_TRUE(adapter_->IsPropertySupported(property));
    EXPECT_EQ(adapter_->GetPropertySize(property, &size), S_OK);
    EXPECT_EQ(size, sizeof(T)) << static_cast<int>(property);
    T value{};
    EXPECT_EQ(adapter_->GetProperty(property, sizeof(T), &value), S_OK);
    EXPECT_EQ(adapter_->GetProperty(property, sizeof(T) - 1, &value), E_INVALIDARG);
    EXPECT_EQ(adapter_->GetProperty(property, sizeof(T), nullptr), E_POINTER);
    return value;
  }

  Ptr<IDXCoreAdapterFactory1> factory_;
  Ptr<IDXCoreAdapterList> list_;
  Ptr<IDXCoreAdapter> adapter_;
};

TEST_F(DxCoreTest, ProgramsCanSelectIt) {
  EXPECT_TRUE(adapter_->IsValid());
  EXPECT_TRUE(Property<bool>(DXCoreAdapterProperty::IsHardware));
  EXPECT_NE(Property<DXCoreHardwareID>(DXCoreAdapterProperty::HardwareID).vendorID, 0x1414u);
  EXPECT_NE(Property<DXCoreHardwareIDParts>(DXCoreAdapterProperty::HardwareIDParts).vendorID, 0u);
  EXPECT_TRUE(adapter_->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE));
  EXPECT_TRUE(adapter_->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML));
  EXPECT_TRUE(adapter_->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS));
  EXPECT_FALSE(adapter_->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS));
}

// Sets a variable of the environment while it exists.
class AdapterKindVariable {
 public:
  explicit AdapterKindVariable(const char* value) { setenv("ANYDML_ADAPTER_KIND", value, 1); }
  ~AdapterKindVariable() { unsetenv("ANYDML_ADAPTER_KIND"); }
};

// The ways in which programs find NPUs: by CORE_COMPUTE or GENERIC_ML without GRAPHICS, by type, by workload.
TEST_F(DxCoreTest, NpuWhenToldSo) {
  const AdapterKindVariable npu("npu");
  EXPECT_TRUE(adapter_->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE));
  EXPECT_TRUE(adapter_->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML));
  EXPECT_FALSE(adapter_->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS));
  EXPECT_TRUE(adapter_->IsAttributeSupported(DXCORE_HARDWARE_TYPE_ATTRIBUTE_NPU));
  EXPECT_FALSE(adapter_->IsAttributeSupported(DXCORE_HARDWARE_TYPE_ATTRIBUTE_COMPUTE_ACCELERATOR));
  EXPECT_TRUE(Property<bool>(DXCoreAdapterProperty::IsHardware));
  Ptr<IDXCoreAdapterList> list;
  ASSERT_EQ(factory_->CreateAdapterList(1, &DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS, IID_PPV_ARGS(&list)),
            S_OK);
  EXPECT_EQ(list->GetAdapterCount(), 0u);
  const auto by_type = [&](DXCoreHardwareTypeFilterFlags type) {
    EXPECT_EQ(
        factory_->CreateAdapterListByWorkload(DXCoreWorkload::MachineLearning,
                                              DXCoreRuntimeFilterFlags::D3D12, type, IID_PPV_ARGS(&list)),
        S_OK);
    return list->GetAdapterCount();
  };
  EXPECT_GE(by_type(DXCoreHardwareTypeFilterFlags::NPU), 1u);
  EXPECT_EQ(by_type(DXCoreHardwareTypeFilterFlags::GPU), 0u);
  EXPECT_EQ(by_type(DXCoreHardwareTypeFilterFlags::ComputeAccelerator), 0u);
}

TEST_F(DxCoreTest, KindOfOneAdapter) {
  Ptr<IDXCoreAdapterList> list;
  {
    const AdapterKindVariable npu("gpu,cpu=npu");
    ASSERT_EQ(factory_->CreateAdapterList(1, &DXCORE_HARDWARE_TYPE_ATTRIBUTE_NPU, IID_PPV_ARGS(&list)), S_OK);
    EXPECT_EQ(list->GetAdapterCount(), 1u);
  }
  const AdapterKindVariable software("cuda:0=gpu,cpu=software");
  ASSERT_EQ(list->GetAdapter(0, IID_PPV_ARGS(&adapter_)), S_OK);
  EXPECT_FALSE(Property<bool>(DXCoreAdapterProperty::IsHardware));
  EXPECT_FALSE(adapter_->IsAttributeSupported(DXCORE_HARDWARE_TYPE_ATTRIBUTE_GPU));
}

TEST_F(DxCoreTest, KindThatIsNone) {
  const AdapterKindVariable wrong("npu,cpu=fpga");
  Ptr<IDXCoreAdapterFactory> factory;
  EXPECT_EQ(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory)), E_INVALIDARG);
  EXPECT_STREQ(
      AnyDmlGetLastErrorMessage(),
      "DXCoreCreateAdapterFactory: the environment variable ANYDML_ADAPTER_KIND is \"npu,cpu=fpga\" but "
      "must be gpu, compute, npu or software, or a list such as cpu=npu,cuda:0=gpu");
  Ptr<IDXGIFactory4> dxgi;
  EXPECT_EQ(CreateDXGIFactory1(IID_PPV_ARGS(&dxgi)), E_INVALIDARG);
}

TEST_F(DxCoreTest, Properties) {
  const auto luid = Property<LUID>(DXCoreAdapterProperty::InstanceLuid);
  EXPECT_NE(luid.LowPart, 0u);
  Property<uint64_t>(DXCoreAdapterProperty::DriverVersion);
  Property<uint64_t>(DXCoreAdapterProperty::KmdModelVersion);
  Property<uint16_t>(DXCoreAdapterProperty::ComputePreemptionGranularity);
  Property<uint16_t>(DXCoreAdapterProperty::GraphicsPreemptionGranularity);
  Property<uint64_t>(DXCoreAdapterProperty::DedicatedSystemMemory);
  Property<bool>(DXCoreAdapterProperty::AcgCompatible);
  Property<bool>(DXCoreAdapterProperty::IsIntegrated);
  Property<bool>(DXCoreAdapterProperty::IsDetachable);
  EXPECT_GT(Property<uint64_t>(DXCoreAdapterProperty::DedicatedAdapterMemory) +
                Property<uint64_t>(DXCoreAdapterProperty::SharedSystemMemory),
            0u);
  size_t size = 0;
  ASSERT_EQ(adapter_->GetPropertySize(DXCoreAdapterProperty::DriverDescription, &size), S_OK);
  std::vector<char> text(size);
  EXPECT_EQ(adapter_->GetProperty(DXCoreAdapterProperty::DriverDescription, size, text.data()), S_OK);
  EXPECT_EQ(std::strlen(text.data()) + 1, size);
  EXPECT_GT(size, 2u);
  EXPECT_EQ(adapter_->GetProperty(DXCoreAdapterProperty::DriverDescription, size - 1, text.data()),
            E_INVALIDARG);
  const auto unknown = static_cast<DXCoreAdapterProperty>(999);
  EXPECT_FALSE(adapter_->IsPropertySupported(unknown));
  EXPECT_EQ(adapter_->GetPropertySize(unknown, &size), DXGI_ERROR_INVALID_CALL);
  EXPECT_EQ(adapter_->GetProperty(unknown, 8, text.data()), DXGI_ERROR_INVALID_CALL);
}

TEST_F(DxCoreTest, MemoryBudget) {
  ASSERT_TRUE(adapter_->IsQueryStateSupported(DXCoreAdapterState::AdapterMemoryBudget));
  const DXCoreAdapterMemoryBudgetNodeSegmentGroup local = {0, DXCoreSegmentGroup::Local};
  DXCoreAdapterMemoryBudget budget{};
  EXPECT_EQ(adapter_->QueryState(DXCoreAdapterState::AdapterMemoryBudget, &local, &budget), S_OK);
  EXPECT_GT(budget.budget, 0u);
  EXPECT_EQ(adapter_->QueryState(DXCoreAdapterState::AdapterMemoryBudget, sizeof(local), &local,
                                 sizeof(budget) - 1, &budget),
            E_INVALIDARG);
  EXPECT_EQ(adapter_->QueryState(DXCoreAdapterState::AdapterMemoryBudget, &budget), E_POINTER);
  EXPECT_FALSE(adapter_->IsSetStateSupported(DXCoreAdapterState::AdapterMemoryBudget));
}

TEST_F(DxCoreTest, Lists) {
  Ptr<IDXCoreAdapterList> list;
  const GUID both[] = {DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE,
                       DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML};
  ASSERT_EQ(factory_->CreateAdapterList(2, both, IID_PPV_ARGS(&list)), S_OK);
  EXPECT_GE(list->GetAdapterCount(), 1u);
  EXPECT_FALSE(list->IsStale());
  ASSERT_EQ(factory_->CreateAdapterList(1, &DXCORE_ADAPTER_ATTRIBUTE_D3D11_GRAPHICS, IID_PPV_ARGS(&list)),
            S_OK);
  EXPECT_EQ(list->GetAdapterCount(), 0u);
  Ptr<IDXCoreAdapter> none;
  EXPECT_EQ(list->GetAdapter(0, IID_PPV_ARGS(&none)), E_INVALIDARG);
  EXPECT_EQ(factory_->CreateAdapterList(0, nullptr, IID_PPV_ARGS(&list)), E_INVALIDARG);
  ASSERT_EQ(
      factory_->CreateAdapterListByWorkload(DXCoreWorkload::MachineLearning, DXCoreRuntimeFilterFlags::D3D12,
                                            DXCoreHardwareTypeFilterFlags::None, IID_PPV_ARGS(&list)),
      S_OK);
  EXPECT_GE(list->GetAdapterCount(), 1u);
}

TEST_F(DxCoreTest, Sort) {
  for (const auto preference : {DXCoreAdapterPreference::Hardware, DXCoreAdapterPreference::MinimumPower,
                                DXCoreAdapterPreference::HighPerformance}) {
    EXPECT_TRUE(list_->IsAdapterPreferenceSupported(preference));
    EXPECT_EQ(list_->Sort(1, &preference), S_OK);
  }
  EXPECT_EQ(list_->Sort(0, nullptr), E_INVALIDARG);
  const auto unknown = static_cast<DXCoreAdapterPreference>(50);
  EXPECT_EQ(list_->Sort(1, &unknown), E_INVALIDARG);
}

TEST_F(DxCoreTest, FactoryAndLuid) {
  Ptr<IUnknown> mine, its;
  EXPECT_EQ(factory_->QueryInterface(IID_PPV_ARGS(&mine)), S_OK);
  EXPECT_EQ(adapter_->GetFactory(IID_PPV_ARGS(&its)), S_OK);
  EXPECT_EQ(mine.get(), its.get());
  const auto luid = Property<LUID>(DXCoreAdapterProperty::InstanceLuid);
  Ptr<IDXCoreAdapter> same, none;
  EXPECT_EQ(factory_->GetAdapterByLuid(luid, IID_PPV_ARGS(&same)), S_OK);
  EXPECT_EQ(factory_->GetAdapterByLuid(LUID{0, 0}, IID_PPV_ARGS(&none)), E_INVALIDARG);
}

TEST_F(DxCoreTest, Notifications) {
  const auto callback = [](DXCoreNotificationType, IUnknown*, void*) {};
  uint32_t cookie = 0;
  EXPECT_TRUE(factory_->IsNotificationTypeSupported(DXCoreNotificationType::AdapterListStale));
  EXPECT_EQ(factory_->RegisterEventNotification(list_.get(), DXCoreNotificationType::AdapterListStale,
                                                callback, nullptr, &cookie),
            S_OK);
  EXPECT_EQ(factory_->UnregisterEventNotification(cookie), S_OK);
  EXPECT_EQ(factory_->UnregisterEventNotification(cookie), E_INVALIDARG);
  EXPECT_EQ(factory_->RegisterEventNotification(nullptr, DXCoreNotificationType::AdapterListStale, callback,
                                                nullptr, &cookie),
            E_POINTER);
}

TEST_F(DxCoreTest, DeviceOnTheAdapter) {
  const auto device = CreateDevice(adapter_.get());
  const auto luid = Property<LUID>(DXCoreAdapterProperty::InstanceLuid);
  EXPECT_EQ(device->GetAdapterLuid().LowPart, luid.LowPart);
  EXPECT_EQ(device->GetAdapterLuid().HighPart, luid.HighPart);
}

class DxgiTest : public NoLeakTest {
 protected:
  void SetUp() override {
    NoLeakTest::SetUp();
    ASSERT_EQ(CreateDXGIFactory2(0, IID_PPV_ARGS(&factory_)), S_OK);
  }
  void TearDown() override {
    factory_.Reset();
    NoLeakTest::TearDown();
  }
  Ptr<IDXGIFactory6> factory_;
};

TEST_F(DxgiTest, Enumeration) {
  Ptr<IDXGIAdapter1> adapter;
  UINT count = 0;
  while (factory_->EnumAdapters1(count, &adapter) == S_OK) {
    DXGI_ADAPTER_DESC1 desc;
    ASSERT_EQ(adapter->GetDesc1(&desc), S_OK);
    EXPECT_EQ(desc.Flags & DXGI_ADAPTER_FLAG_SOFTWARE, 0u);
    EXPECT_NE(desc.VendorId, 0x1414u);
    EXPECT_NE(desc.Description[0], L'\0');
    ++count;
  }
  EXPECT_GE(count, 1u);
  EXPECT_EQ(factory_->EnumAdapters1(count, &adapter), DXGI_ERROR_NOT_FOUND);
  EXPECT_EQ(factory_->EnumAdapters1(0, nullptr), DXGI_ERROR_INVALID_CALL);
}

TEST_F(DxgiTest, SoftwareWhenToldSo) {
  const AdapterKindVariable software("software");
  Ptr<IDXGIAdapter4> adapter;
  ASSERT_EQ(factory_->EnumWarpAdapter(IID_PPV_ARGS(&adapter)), S_OK);
  DXGI_ADAPTER_DESC1 desc1;
  DXGI_ADAPTER_DESC3 desc3;
  ASSERT_EQ(adapter->GetDesc1(&desc1), S_OK);
  ASSERT_EQ(adapter->GetDesc3(&desc3), S_OK);
  EXPECT_EQ(desc1.Flags, static_cast<UINT>(DXGI_ADAPTER_FLAG_SOFTWARE));
  EXPECT_EQ(desc3.Flags, DXGI_ADAPTER_FLAG3_SOFTWARE);
}

TEST_F(DxgiTest, OtherWaysToAnAdapter) {
  Ptr<IDXGIAdapter4> warp, same, preferred;
  ASSERT_EQ(factory_->EnumWarpAdapter(IID_PPV_ARGS(&warp)), S_OK);
  DXGI_ADAPTER_DESC3 desc;
  ASSERT_EQ(warp->GetDesc3(&desc), S_OK);
  EXPECT_EQ(factory_->EnumAdapterByLuid(desc.AdapterLuid, IID_PPV_ARGS(&same)), S_OK);
  EXPECT_EQ(factory_->EnumAdapterByLuid(LUID{0, 0}, IID_PPV_ARGS(&same)), DXGI_ERROR_NOT_FOUND);
  EXPECT_EQ(
      factory_->EnumAdapterByGpuPreference(0, DXGI_GPU_PREFERENCE_HIGH_PERFORMANCE, IID_PPV_ARGS(&preferred)),
      S_OK);
  EXPECT_EQ(
      factory_->EnumAdapterByGpuPreference(99, DXGI_GPU_PREFERENCE_MINIMUM_POWER, IID_PPV_ARGS(&preferred)),
      DXGI_ERROR_NOT_FOUND);
}

TEST_F(DxgiTest, AdapterMethods) {
  Ptr<IDXGIAdapter4> adapter;
  ASSERT_EQ(factory_->EnumWarpAdapter(IID_PPV_ARGS(&adapter)), S_OK);
  DXGI_QUERY_VIDEO_MEMORY_INFO info;
  EXPECT_EQ(adapter->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &info), S_OK);
  EXPECT_GT(info.Budget, 0u);
  EXPECT_EQ(adapter->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_NON_LOCAL, &info), S_OK);
  EXPECT_EQ(adapter->QueryVideoMemoryInfo(1, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &info), E_INVALIDARG);
  EXPECT_EQ(adapter->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, nullptr), E_INVALIDARG);
  EXPECT_EQ(adapter->GetDesc(nullptr), E_INVALIDARG);
  EXPECT_EQ(adapter->GetDesc3(nullptr), E_INVALIDARG);
  IDXGIOutput* output = nullptr;
  EXPECT_EQ(adapter->EnumOutputs(0, &output), DXGI_ERROR_NOT_FOUND);
  LARGE_INTEGER version;
  EXPECT_EQ(adapter->CheckInterfaceSupport(__uuidof(IDXGIDevice), &version), S_OK);
  EXPECT_EQ(HIWORD(version.HighPart), version.QuadPart >> 48);
  EXPECT_EQ(LOWORD(version.LowPart), version.QuadPart & 0xffff);
  EXPECT_EQ(IID_IDXGIFactory4, __uuidof(IDXGIFactory4));
  EXPECT_EQ(adapter->CheckInterfaceSupport(GUID{}, &version), DXGI_ERROR_UNSUPPORTED);
  Ptr<IDXGIFactory> parent;
  EXPECT_EQ(adapter->GetParent(IID_PPV_ARGS(&parent)), S_OK);
  const auto device = CreateDevice(adapter.get());
  EXPECT_EQ(factory_->IsCurrent(), TRUE);
}

TEST_F(DxgiTest, NoWindows) {
  IDXGISwapChain* chain = reinterpret_cast<IDXGISwapChain*>(this);
  EXPECT_EQ(factory_->CreateSwapChain(nullptr, nullptr, &chain), DXGI_ERROR_UNSUPPORTED);
  EXPECT_EQ(chain, nullptr);
}

}  // namespace
}  // namespace anydml::testing
