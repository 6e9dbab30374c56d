// Device creation, feature queries, feature levels, residency, graphs.
#include <sys/wait.h>
#include <unistd.h>

#include "dml/dml_test.h"

namespace anydml::test {
namespace {

class DeviceTest : public DmlTest {
 protected:
  ComPtr<ID3D12Device> MakeD3d() {
    ComPtr<ID3D12Device> d3d;
    Check(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&d3d)), "D3D12CreateDevice");
    return d3d;
  }
};

HRESULT Create(ID3D12Device* d3d, ComPtr<IDMLDevice>* device, uint32_t flags = 0, uint32_t minimum = 0x1000) {
  return DMLCreateDevice1(d3d, static_cast<DML_CREATE_DEVICE_FLAGS>(flags),
                          static_cast<DML_FEATURE_LEVEL>(minimum),
                          IID_PPV_ARGS(device->ReleaseAndGetAddressOf()));
}

// A foreign ID3D12Device: only QueryInterface may be called.
struct Foreign : IUnknown {
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID, void** object) override {
    *object = nullptr;
    return E_NOINTERFACE;
  }
  ULONG STDMETHODCALLTYPE AddRef() override { return 1; }
  ULONG STDMETHODCALLTYPE Release() override { return 1; }
};

TEST_F(DeviceTest, CreationChecksItsArguments) {
  auto d3d = MakeD3d();
  ComPtr<IDMLDevice> device;
  ExpectFailure(Create(nullptr, &device), E_INVALIDARG, "d3d12Device is null");
  Foreign foreign;
  ExpectFailure(Create(reinterpret_cast<ID3D12Device*>(&foreign), &device), E_INVALIDARG,
                "not a device of this");
  ExpectFailure(Create(d3d.Get(), &device, 2), E_INVALIDARG, "flags is 2");
  ExpectFailure(Create(d3d.Get(), &device, 0, 0x1234), E_INVALIDARG, "minimumFeatureLevel");
  ExpectFailure(Create(d3d.Get(), &device, 0, 0x7000), DXGI_ERROR_UNSUPPORTED, "minimumFeatureLevel");
  EXPECT_EQ(device, nullptr);
  EXPECT_EQ(Create(d3d.Get(), &device, 1, 0x6400), S_OK);
}

TEST_F(DeviceTest, NullOutIsSFalseAfterValidation) {
  auto d3d = MakeD3d();
  EXPECT_EQ(DMLCreateDevice(d3d.Get(), DML_CREATE_DEVICE_FLAG_NONE, __uuidof(IDMLDevice), nullptr), S_FALSE);
  EXPECT_EQ(DMLCreateDevice(nullptr, DML_CREATE_DEVICE_FLAG_NONE, __uuidof(IDMLDevice), nullptr),
            E_INVALIDARG);
}

TEST_F(DeviceTest, WrongInterface) {
  auto d3d = MakeD3d();
  void* out = &out;
  ExpectFailure(DMLCreateDevice(d3d.Get(), DML_CREATE_DEVICE_FLAG_NONE, __uuidof(IDMLOperator), &out),
                E_NOINTERFACE, "riid");
  EXPECT_EQ(out, nullptr);
}

TEST_F(DeviceTest, FeatureLevelIsHeldByTheEnvironmentAtEachCreation) {
  auto d3d = MakeD3d();
  ComPtr<IDMLDevice> device;
  {
    ScopedEnv env("ANYDML_FEATURE_LEVEL", "2.1");
    EXPECT_EQ(Create(d3d.Get(), &device, 0, 0x2100), S_OK);
    ComPtr<IDMLDevice> higher;
    ExpectFailure(Create(d3d.Get(), &higher, 0, 0x3000), DXGI_ERROR_UNSUPPORTED, "has 2.1");
  }
  // The old device is still referenced, a new one is not.
  const TopK one_dimension({4}, 0, 2);
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_TOP_K1, &one_dimension.desc};
  EXPECT_EQ(device->CreateOperator(&desc, __uuidof(IDMLOperator), nullptr), E_INVALIDARG);
  EXPECT_EQ(LastError().find("TOP_K1"), 0u) << LastError();
  EXPECT_EQ(Create(d3d.Get(), &device, 0, 0x6400), S_OK);
  EXPECT_EQ(device->CreateOperator(&desc, __uuidof(IDMLOperator), nullptr), S_FALSE) << LastError();
}

TEST_F(DeviceTest, InvalidHeldLevel) {
  auto d3d = MakeD3d();
  ComPtr<IDMLDevice> device;
  for (const char* text : {"9.9", "two", "2.1x"}) {
    ScopedEnv env("ANYDML_FEATURE_LEVEL", text);
    ExpectFailure(Create(d3d.Get(), &device), E_INVALIDARG, "ANYDML_FEATURE_LEVEL");
  }
}

BOOL TypeSupport(IDMLDevice* device, uint32_t type) {
  const DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT query = {static_cast<DML_TENSOR_DATA_TYPE>(type)};
  DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT support = {99};
  EXPECT_EQ(device->CheckFeatureSupport(DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, sizeof(query), &query,
                                        sizeof(support), &support),
            S_OK);
  return support.IsSupported;
}

TEST_F(DeviceTest, DataTypes) {
  EXPECT_EQ(TypeSupport(h().dml(), 0), 0u);
  for (uint32_t type = 1; type <= 13; ++type) EXPECT_EQ(TypeSupport(h().dml(), type), 1u) << type;
  EXPECT_EQ(TypeSupport(h().dml(), 14), 0u);
}

TEST_F(DeviceTest, DataTypesOfALowerLevel) {
  ScopedEnv env("ANYDML_FEATURE_LEVEL", "2.0");
  for (uint32_t type = 1; type <= 8; ++type) EXPECT_EQ(TypeSupport(h().dml(), type), 1u) << type;
  for (uint32_t type = 9; type <= 13; ++type) EXPECT_EQ(TypeSupport(h().dml(), type), 0u) << type;
}

TEST_F(DeviceTest, FeatureLevels) {
  const auto ask = [&](std::vector<uint32_t> levels, DML_FEATURE_LEVEL* best) {
    const DML_FEATURE_QUERY_FEATURE_LEVELS query = {
        static_cast<UINT>(levels.size()), reinterpret_cast<const DML_FEATURE_LEVEL*>(levels.data())};
    DML_FEATURE_DATA_FEATURE_LEVELS support = {};
    const HRESULT result = h().dml()->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, sizeof(query), &query,
                                                          sizeof(support), &support);
    *best = support.MaxSupportedFeatureLevel;
    return result;
  };
  ScopedEnv env("ANYDML_FEATURE_LEVEL", "3.1");
  DML_FEATURE_LEVEL best = {};
  EXPECT_EQ(ask({0x1000, 0x3000, 0x6400, 0x2100}, &best), S_OK);
  EXPECT_EQ(best, DML_FEATURE_LEVEL_3_0);
  EXPECT_EQ(ask({0x1000, 0x3100}, &best), S_OK);
  EXPECT_EQ(best, DML_FEATURE_LEVEL_3_1);
  ExpectFailure(ask({0x4000, 0x6400}, &best), DXGI_ERROR_UNSUPPORTED, "3.1");
  EXPECT_EQ(ask({}, &best), E_INVALIDARG);
}

TEST_F(DeviceTest, FeatureQueryArguments) {
  const DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT query = {DML_TENSOR_DATA_TYPE_FLOAT32};
  DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT support = {};
  auto* device = h().dml();
  const auto type = DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT;
  EXPECT_EQ(device->CheckFeatureSupport(type, 8, &query, 4, &support), E_INVALIDARG);
  EXPECT_EQ(device->CheckFeatureSupport(type, 4, &query, 8, &support), E_INVALIDARG);
  EXPECT_EQ(device->CheckFeatureSupport(type, 4, nullptr, 4, &support), E_INVALIDARG);
  EXPECT_EQ(device->CheckFeatureSupport(type, 4, &query, 4, nullptr), E_INVALIDARG);
  ExpectFailure(device->CheckFeatureSupport(static_cast<DML_FEATURE>(99), 4, &query, 4, &support),
                DXGI_ERROR_UNSUPPORTED, "feature 99");
  const DML_FEATURE_QUERY_FEATURE_LEVELS null_list = {1, nullptr};
  DML_FEATURE_DATA_FEATURE_LEVELS level = {};
  EXPECT_EQ(device->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, sizeof(null_list), &null_list, 4, &level),
            E_INVALIDARG);
}

TEST_F(DeviceTest, ParentDeviceHasTheIdentityOfTheQueuesDevice) {
  ComPtr<IUnknown> parent;
  ComPtr<IUnknown> of_queue;
  ASSERT_EQ(h().dml()->GetParentDevice(IID_PPV_ARGS(&parent)), S_OK);
  ASSERT_EQ(h().queue()->GetDevice(IID_PPV_ARGS(&of_queue)), S_OK);
  EXPECT_EQ(parent, of_queue);
  ComPtr<ID3D12Device> d3d;
  ASSERT_EQ(h().dml()->GetParentDevice(IID_PPV_ARGS(&d3d)), S_OK);
  EXPECT_EQ(h().dml()->GetParentDevice(__uuidof(ID3D12Device), nullptr), E_POINTER);
  void* out = nullptr;
  EXPECT_EQ(h().dml()->GetParentDevice(__uuidof(IDMLDevice), &out), E_NOINTERFACE);
}

TEST_F(DeviceTest, Residency) {
  const TopK op({1, 1, 1, 4}, 3, 1);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &op.desc);
  IDMLPageable* objects[] = {compiled.Get(), nullptr};
  auto* device = h().dml();
  EXPECT_EQ(device->Evict(1, nullptr), E_INVALIDARG);
  EXPECT_EQ(device->Evict(2, objects), E_INVALIDARG);
  EXPECT_EQ(device->MakeResident(2, objects), E_INVALIDARG);
  EXPECT_EQ(device->Evict(0, nullptr), S_OK);
  EXPECT_EQ(device->MakeResident(1, objects), S_OK);
  EXPECT_EQ(device->Evict(1, objects), S_OK);
  EXPECT_EQ(device->Evict(1, objects), S_OK);
  ExpectFailure(device->Evict(1, objects), E_INVALIDARG, "evicted already");
  EXPECT_EQ(device->MakeResident(1, objects), S_OK);
  h().Initialize(compiled.Get());
  EXPECT_EQ(device->GetDeviceRemovedReason(), S_OK);
}

TEST_F(DeviceTest, BelongsToTheProcessThatMadeIt) {
  const TopK op({1, 1, 1, 4}, 3, 1);
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_TOP_K1, &op.desc};
  auto* const device = h().dml();
  const pid_t child = fork();
  if (child == 0) {
    ComPtr<IDMLOperator> created;
    const bool refused = device->CreateOperator(&desc, IID_PPV_ARGS(&created)) == DXGI_ERROR_DEVICE_REMOVED;
    constexpr char kSentence[] =
        "IDMLDevice::CreateOperator: the DirectML device was removed: the Direct3D device belongs to the "
        "parent process, whose threads this one does not have; create another one after the fork";
    _exit(refused && LastError() == kSentence ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ComPtr<IDMLOperator> created;
  EXPECT_EQ(device->CreateOperator(&desc, IID_PPV_ARGS(&created)), S_OK);
}

TEST_F(DeviceTest, RecordingAnEvictedDispatchableRemovesTheDevice) {
  const TopK op({1, 1, 1, 4}, 3, 1);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &op.desc);
  ComPtr<IDMLOperatorInitializer> initializer;
  auto* target = compiled.Get();
  ASSERT_EQ(h().dml()->CreateOperatorInitializer(1, &target, IID_PPV_ARGS(&initializer)), S_OK);
  auto table = h().CreateTable(initializer.Get());
  IDMLPageable* object = initializer.Get();
  ASSERT_EQ(h().dml()->Evict(1, &object), S_OK);
  h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
  ExpectRemoved(h().dml(), DXGI_ERROR_INVALID_CALL, "is evicted");
}

}  // namespace
}  // namespace anydml::test
