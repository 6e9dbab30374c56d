// The rules of COM for all twelve interfaces; private data, names, lifetimes, removal, the debug device.
#include <functional>

#include "dml/dml_test.h"

namespace anydml::test {
namespace {

class ComTest : public DmlTest {
 protected:
  // One object of each class.
  struct Objects {
    ComPtr<IDMLOperator> op;
    ComPtr<IDMLCompiledOperator> compiled;
    ComPtr<IDMLOperatorInitializer> initializer;
    ComPtr<IDMLBindingTable> table;
    ComPtr<IDMLCommandRecorder> recorder;

    std::vector<IDMLDeviceChild*> children() const {
      return {op.Get(), compiled.Get(), initializer.Get(), table.Get(), recorder.Get()};
    }
  };

  Objects MakeObjects(DmlHarness& h) {
    const TopK desc({1, 1, 1, 4}, 3, 1);
    Objects objects;
    objects.op = h.CreateOperator(DML_OPERATOR_TOP_K1, &desc.desc);
    Check(
        h.dml()->CompileOperator(objects.op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&objects.compiled)),
        "CompileOperator");
    Check(h.dml()->CreateOperatorInitializer(0, nullptr, IID_PPV_ARGS(&objects.initializer)),
          "CreateOperatorInitializer");
    Check(h.dml()->CreateBindingTable(nullptr, IID_PPV_ARGS(&objects.table)), "CreateBindingTable");
    objects.recorder = h.recorder();
    return objects;
  }
};

ULONG Count(IUnknown* object) {
  object->AddRef();
  return object->Release();
}

// Reflexive, symmetric, one identity, and nothing but the listed interfaces.
void ExpectInterfaces(IUnknown* object, const std::vector<GUID>& expected) {
  const GUID all[] = {
      __uuidof(IDMLObject),       __uuidof(IDMLDevice),           __uuidof(IDMLDevice1),
      __uuidof(IDMLDeviceChild),  __uuidof(IDMLPageable),         __uuidof(IDMLOperator),
      __uuidof(IDMLDispatchable), __uuidof(IDMLCompiledOperator), __uuidof(IDMLOperatorInitializer),
      __uuidof(IDMLBindingTable), __uuidof(IDMLCommandRecorder),  __uuidof(IDMLDebugDevice)};
  ComPtr<IUnknown> identity;
  ASSERT_EQ(object->QueryInterface(IID_PPV_ARGS(&identity)), S_OK);
  const ULONG before = Count(object);
  for (const GUID& iid : all) {
    bool has = false;
    for (const GUID& e : expected) has = has || e == iid;
    void* out = object;
    const HRESULT result = object->QueryInterface(iid, &out);
    EXPECT_EQ(result, has ? S_OK : E_NOINTERFACE) << std::hex << iid.Data1;
    if (FAILED(result)) {
      EXPECT_EQ(out, nullptr);
      continue;
    }
    ComPtr<IUnknown> back;
    EXPECT_EQ(static_cast<IUnknown*>(out)->QueryInterface(IID_PPV_ARGS(&back)), S_OK);
    EXPECT_EQ(back, identity) << std::hex << iid.Data1;
    for (const GUID& e : expected) {  // from each interface to each other one
      void* other = nullptr;
      ASSERT_EQ(static_cast<IUnknown*>(out)->QueryInterface(e, &other), S_OK);
      static_cast<IUnknown*>(other)->Release();
    }
    static_cast<IUnknown*>(out)->Release();
  }
  EXPECT_EQ(Count(object), before);
  EXPECT_EQ(object->QueryInterface(__uuidof(IUnknown), nullptr), E_POINTER);
}

TEST_F(ComTest, QueryInterface) {
  auto& harness = MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
  const Objects objects = MakeObjects(harness);
  const GUID object = __uuidof(IDMLObject), child = __uuidof(IDMLDeviceChild),
             pageable = __uuidof(IDMLPageable), dispatchable = __uuidof(IDMLDispatchable);
  ExpectInterfaces(harness.dml(), {object, __uuidof(IDMLDevice), __uuidof(IDMLDevice1)});
  ExpectInterfaces(objects.op.Get(), {object, child, __uuidof(IDMLOperator)});
  ExpectInterfaces(objects.compiled.Get(),
                   {object, child, pageable, dispatchable, __uuidof(IDMLCompiledOperator)});
  ExpectInterfaces(objects.initializer.Get(),
                   {object, child, pageable, dispatchable, __uuidof(IDMLOperatorInitializer)});
  ExpectInterfaces(objects.table.Get(), {object, child, __uuidof(IDMLBindingTable)});
  ExpectInterfaces(objects.recorder.Get(), {object, child, __uuidof(IDMLCommandRecorder)});
}

TEST_F(ComTest, DebugDeviceOnlyWithTheFlag) {
  auto& harness = MakeHarness(DML_CREATE_DEVICE_FLAG_DEBUG);
  const std::vector<GUID> expected = {__uuidof(IDMLObject), __uuidof(IDMLDevice), __uuidof(IDMLDevice1),
                                      __uuidof(IDMLDebugDevice)};
  ExpectInterfaces(harness.dml(), expected);
  ComPtr<IDMLDebugDevice> debug;
  ASSERT_EQ(harness.dml()->QueryInterface(IID_PPV_ARGS(&debug)), S_OK);
  ExpectInterfaces(debug.Get(), expected);
}

UINT64 StoredMessages(ID3D12Device* d3d) {
  ComPtr<ID3D12InfoQueue> queue;
  Check(d3d->QueryInterface(IID_PPV_ARGS(&queue)), "QueryInterface(ID3D12InfoQueue)");
  return queue->GetNumStoredMessages();
}

TEST_F(ComTest, MessagesReachTheInfoQueueUnlessMuted) {
  auto& harness = MakeHarness(DML_CREATE_DEVICE_FLAG_DEBUG);
  ComPtr<IDMLDebugDevice> debug;
  ASSERT_EQ(harness.dml()->QueryInterface(IID_PPV_ARGS(&debug)), S_OK);
  ::testing::internal::CaptureStderr();
  const UINT64 before = StoredMessages(harness.d3d());
  EXPECT_EQ(harness.dml()->CreateOperator(nullptr, __uuidof(IDMLOperator), nullptr), E_INVALIDARG);
  EXPECT_EQ(StoredMessages(harness.d3d()), before + 1);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("desc is null"), std::string::npos);

  debug->SetMuteDebugOutput(TRUE);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(harness.dml()->CreateOperator(nullptr, __uuidof(IDMLOperator), nullptr), E_INVALIDARG);
  EXPECT_EQ(StoredMessages(harness.d3d()), before + 1);
  if (std::getenv("ANYDML_DEBUG") == nullptr) {
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  } else {
    ::testing::internal::GetCapturedStderr();
  }
  debug->SetMuteDebugOutput(FALSE);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(harness.dml()->CreateOperator(nullptr, __uuidof(IDMLOperator), nullptr), E_INVALIDARG);
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(StoredMessages(harness.d3d()), before + 2);
}

TEST_F(ComTest, PrivateDataOnEveryObject) {
  const Objects objects = MakeObjects(h());
  std::vector<IDMLObject*> all = {h().dml()};
  for (IDMLDeviceChild* child : objects.children()) all.push_back(child);
  const GUID key = {1, 2, 3, {4}};
  for (IDMLObject* object : all) {
    UINT size = 4;
    uint32_t value = 0;
    EXPECT_EQ(object->GetPrivateData(key, &size, &value), DXGI_ERROR_NOT_FOUND);
    const uint32_t stored = 42;
    EXPECT_EQ(object->SetPrivateData(key, sizeof(stored), &stored), S_OK);
    size = 0;
    EXPECT_EQ(object->GetPrivateData(key, &size, nullptr), S_OK);
    EXPECT_EQ(size, 4u);
    size = 2;
    EXPECT_EQ(object->GetPrivateData(key, &size, &value), DXGI_ERROR_MORE_DATA);
    size = 4;
    EXPECT_EQ(object->GetPrivateData(key, &size, &value), S_OK);
    EXPECT_EQ(value, 42u);
    EXPECT_EQ(object->GetPrivateData(key, nullptr, &value), E_INVALIDARG);
    EXPECT_EQ(object->SetPrivateData(key, 4, nullptr), E_INVALIDARG);
    EXPECT_EQ(object->SetPrivateData(key, 0, nullptr), S_OK);
    EXPECT_EQ(object->SetName(L"a name"), S_OK);

    const ULONG before = Count(h().queue());
    EXPECT_EQ(object->SetPrivateDataInterface(key, h().queue()), S_OK);
    EXPECT_EQ(Count(h().queue()), before + 1);
    ComPtr<IUnknown> back;
    size = sizeof(void*);
    EXPECT_EQ(object->GetPrivateData(key, &size, back.GetAddressOf()), S_OK);
    EXPECT_EQ(back.Get(), h().queue());
    EXPECT_EQ(object->SetPrivateDataInterface(key, nullptr), S_OK);
  }
}

TEST_F(ComTest, ChildrenKnowAndKeepTheirDevice) {
  Objects objects = MakeObjects(h());
  ComPtr<IUnknown> identity;
  ASSERT_EQ(h().dml()->QueryInterface(IID_PPV_ARGS(&identity)), S_OK);
  for (IDMLDeviceChild* child : objects.children()) {
    ComPtr<IUnknown> device;
    EXPECT_EQ(child->GetDevice(IID_PPV_ARGS(&device)), S_OK);
    EXPECT_EQ(device, identity);
    EXPECT_EQ(child->GetDevice(__uuidof(IDMLDevice), nullptr), E_POINTER);
    void* out = nullptr;
    EXPECT_EQ(child->GetDevice(__uuidof(IDMLOperator), &out), E_NOINTERFACE);
  }
  identity = nullptr;
  auto compiled = objects.compiled;
  objects = {};
  DropHarness();
  // The compiled operator alone keeps the operator, the DirectML device and the Direct3D device alive.
  ComPtr<IDMLDevice> device;
  EXPECT_EQ(compiled->GetDevice(IID_PPV_ARGS(&device)), S_OK);
  ComPtr<ID3D12Device> d3d;
  EXPECT_EQ(device->GetParentDevice(IID_PPV_ARGS(&d3d)), S_OK);
  EXPECT_GE(AnyDmlGetLiveObjectCount(), 4u);
}

TEST_F(ComTest, TableHoldsItsDispatchable) {
  const TopK desc({1, 1, 1, 4}, 3, 1);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &desc.desc);
  const ULONG before = Count(compiled.Get());
  auto table = h().CreateTable(compiled.Get());
  EXPECT_EQ(Count(compiled.Get()), before + 1);
  auto buffer = h().CreateBuffer(16);
  const ULONG buffer_before = Count(buffer.Get());
  const Bindings inputs({{buffer.Get()}});
  table->BindInputs(inputs.count(), inputs.data());
  EXPECT_EQ(Count(buffer.Get()), buffer_before);
  EXPECT_EQ(table->Reset(nullptr), S_OK);
  EXPECT_EQ(Count(compiled.Get()), before);
}

// After removal every HRESULT method answers DEVICE_REMOVED and void ones do nothing.
TEST_F(ComTest, AfterRemoval) {
  const Objects objects = MakeObjects(h());
  auto* device = h().dml();
  objects.recorder->RecordDispatch(nullptr, nullptr, nullptr);
  ExpectRemoved(device, E_INVALIDARG, "commandList is null");
  const HRESULT removed = DXGI_ERROR_DEVICE_REMOVED;
  void* out = &out;
  UINT size = 0;
  const GUID key = {1, 2, 3, {4}};
  EXPECT_EQ(device->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, 0, nullptr, 0, nullptr), removed);
  EXPECT_EQ(device->CreateOperator(nullptr, __uuidof(IDMLOperator), &out), removed);
  EXPECT_EQ(out, nullptr);
  EXPECT_NE(LastError().find("commandList is null"), std::string::npos) << LastError();
  EXPECT_EQ(device->CompileOperator(objects.op.Get(), DML_EXECUTION_FLAG_NONE, __uuidof(IDMLCompiledOperator),
                                    &out),
            removed);
  EXPECT_EQ(device->CreateOperatorInitializer(0, nullptr, __uuidof(IDMLOperatorInitializer), &out), removed);
  EXPECT_EQ(device->CreateCommandRecorder(__uuidof(IDMLCommandRecorder), &out), removed);
  EXPECT_EQ(device->CreateBindingTable(nullptr, __uuidof(IDMLBindingTable), &out), removed);
  EXPECT_EQ(device->Evict(0, nullptr), removed);
  EXPECT_EQ(device->MakeResident(0, nullptr), removed);
  EXPECT_EQ(device->GetParentDevice(__uuidof(ID3D12Device), &out), removed);
  EXPECT_EQ(objects.initializer->Reset(0, nullptr), removed);
  EXPECT_EQ(objects.table->Reset(nullptr), removed);
  for (IDMLDeviceChild* child : objects.children()) {
    EXPECT_EQ(child->GetDevice(__uuidof(IDMLDevice), &out), removed);
    EXPECT_EQ(child->GetPrivateData(key, &size, nullptr), removed);
    EXPECT_EQ(child->SetPrivateData(key, 0, nullptr), removed);
    EXPECT_EQ(child->SetPrivateDataInterface(key, nullptr), removed);
    EXPECT_EQ(child->SetName(L"x"), removed);
    ComPtr<IUnknown> unknown;
    EXPECT_EQ(child->QueryInterface(IID_PPV_ARGS(&unknown)), S_OK);
  }
  objects.table->BindInputs(3, nullptr);
  objects.table->BindOutputs(3, nullptr);
  objects.table->BindTemporaryResource(nullptr);
  objects.table->BindPersistentResource(nullptr);
  objects.recorder->RecordDispatch(h().list(), nullptr, nullptr);
  EXPECT_GE(objects.compiled->GetBindingProperties().RequiredDescriptorCount, 3u);
  ExpectRemoved(device, E_INVALIDARG, "commandList is null");  // the first reason is kept
}

TEST_F(ComTest, RemovalIsPerDevice) {
  auto d3d = h().d3d();
  DmlHarness other(d3d, DML_CREATE_DEVICE_FLAG_NONE);
  h().recorder()->RecordDispatch(nullptr, nullptr, nullptr);
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), E_INVALIDARG);
  EXPECT_EQ(other.dml()->GetDeviceRemovedReason(), S_OK);
  EXPECT_EQ(d3d->GetDeviceRemovedReason(), S_OK);
}

TEST_F(ComTest, RemovalOfTheDirect3dDeviceImpliesOurs) {
  const Objects objects = MakeObjects(h());
  RemoveDirect3d(h().d3d());
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), h().d3d()->GetDeviceRemovedReason());
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), DXGI_ERROR_DEVICE_REMOVED);
  EXPECT_EQ(h().dml()->CreateOperator(nullptr, __uuidof(IDMLOperator), nullptr), DXGI_ERROR_DEVICE_REMOVED);
  EXPECT_EQ(objects.table->Reset(nullptr), DXGI_ERROR_DEVICE_REMOVED);
  EXPECT_EQ(DMLCreateDevice(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE, __uuidof(IDMLDevice), nullptr),
            DXGI_ERROR_DEVICE_REMOVED);
}

TEST_F(ComTest, Extensions) {
  EXPECT_STRNE(AnyDmlGetVersion(), "");
  EXPECT_STREQ(AnyDmlGetImplementation(nullptr), "");
  EXPECT_STREQ(AnyDmlExplainImplementation(nullptr), "");
  const TopK desc({1, 1, 1, 4}, 3, 1);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &desc.desc);
  const std::string name = AnyDmlGetImplementation(compiled.Get());
  EXPECT_FALSE(name.empty());
  EXPECT_NE(std::string(AnyDmlExplainImplementation(compiled.Get())).find(name), std::string::npos);
  EXPECT_EQ(h().dml()->CreateOperator(nullptr, __uuidof(IDMLOperator), nullptr), E_INVALIDARG);
  EXPECT_STRNE(AnyDmlGetLastErrorMessage(), "");
  AnyDmlClearLastError();
  EXPECT_STREQ(AnyDmlGetLastErrorMessage(), "");
}

}  // namespace
}  // namespace anydml::test
