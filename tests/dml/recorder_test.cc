// RecordDispatch: its arguments, snapshots, volatile descriptors, data errors,
// objects of several devices.
#include "dml/dml_test.h"

namespace anydml::test {
namespace {

class RecorderTest : public DmlTest {
 protected:
  // An initialized identity of four floats and a table for it.
  struct Copy {
    ComPtr<IDMLCompiledOperator> compiled;
    ComPtr<IDMLBindingTable> table;
    ComPtr<ID3D12Resource> input, output;

    void Bind() const { BindTo(input.Get(), output.Get()); }
    void BindTo(ID3D12Resource* source, ID3D12Resource* target) const {
      const Bindings in({{source}}), out({{target}});
      table->BindInputs(in.count(), in.data());
      table->BindOutputs(out.count(), out.data());
    }
  };

  Copy MakeCopy(DmlHarness& h, DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE) {
    const Identity op({1, 1, 1, 4});
    Copy copy;
    copy.compiled = h.Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc, flags);
    h.Initialize(copy.compiled.Get());
    copy.table = h.CreateTable(copy.compiled.Get());
    copy.input = h.Upload<float>({1, 2, 3, 4});
    copy.output = h.Upload<float>({-1, -1, -1, -1});
    return copy;
  }
  void Record(DmlHarness& h, const Copy& copy) {
    h.recorder()->RecordDispatch(h.list(), copy.compiled.Get(), copy.table.Get());
  }
  std::vector<float> Read(DmlHarness& h, ID3D12Resource* buffer) { return h.Download<float>(buffer, 4); }

  const std::vector<float> kData = {1, 2, 3, 4};
  const std::vector<float> kUntouched = {-1, -1, -1, -1};
};

TEST_F(RecorderTest, NullArguments) {
  for (int missing = 0; missing < 3; ++missing) {
    auto& harness = MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
    const Copy copy = MakeCopy(harness);
    copy.Bind();
    harness.recorder()->RecordDispatch(missing == 0 ? nullptr : harness.list(),
                                       missing == 1 ? nullptr : copy.compiled.Get(),
                                       missing == 2 ? nullptr : copy.table.Get());
    const char* names[] = {"commandList is null", "dispatchable is null", "bindings is null"};
    ExpectRemoved(harness.dml(), E_INVALIDARG, names[missing]);
  }
}

TEST_F(RecorderTest, DirectAndComputeLists) {
  for (auto type : {D3D12_COMMAND_LIST_TYPE_DIRECT, D3D12_COMMAND_LIST_TYPE_COMPUTE}) {
    DmlHarness harness(DML_CREATE_DEVICE_FLAG_NONE, type);
    const Copy copy = MakeCopy(harness);
    copy.Bind();
    Record(harness, copy);
    harness.ExecuteAndWait();
    EXPECT_EQ(Read(harness, copy.output.Get()), kData);
  }
}

TEST_F(RecorderTest, CopyList) {
  const Copy copy = MakeCopy(h());
  copy.Bind();
  ComPtr<ID3D12CommandAllocator> allocator;
  ComPtr<ID3D12GraphicsCommandList> list;
  const auto type = D3D12_COMMAND_LIST_TYPE_COPY;
  Check(h().d3d()->CreateCommandAllocator(type, IID_PPV_ARGS(&allocator)), "CreateCommandAllocator");
  Check(h().d3d()->CreateCommandList(0, type, allocator.Get(), nullptr, IID_PPV_ARGS(&list)),
        "CreateCommandList");
  h().recorder()->RecordDispatch(list.Get(), copy.compiled.Get(), copy.table.Get());
  EXPECT_TRUE(FAILED(h().dml()->GetDeviceRemovedReason()));
  EXPECT_EQ(LastError().find("IDMLCommandRecorder::RecordDispatch: "), 0u) << LastError();
}

TEST_F(RecorderTest, ClosedList) {
  const Copy copy = MakeCopy(h());
  copy.Bind();
  h().CloseAndExecute();
  h().Wait();
  Record(h(), copy);
  EXPECT_TRUE(FAILED(h().dml()->GetDeviceRemovedReason()));
  EXPECT_EQ(LastError().find("IDMLCommandRecorder::RecordDispatch: "), 0u) << LastError();
}

TEST_F(RecorderTest, DescriptorHeapNotSet) {
  const Copy copy = MakeCopy(h());
  copy.Bind();
  ComPtr<ID3D12CommandAllocator> allocator;
  ComPtr<ID3D12GraphicsCommandList> list;
  const auto type = D3D12_COMMAND_LIST_TYPE_COMPUTE;
  Check(h().d3d()->CreateCommandAllocator(type, IID_PPV_ARGS(&allocator)), "CreateCommandAllocator");
  Check(h().d3d()->CreateCommandList(0, type, allocator.Get(), nullptr, IID_PPV_ARGS(&list)),
        "CreateCommandList");
  h().recorder()->RecordDispatch(list.Get(), copy.compiled.Get(), copy.table.Get());
  EXPECT_TRUE(FAILED(h().dml()->GetDeviceRemovedReason()));
  EXPECT_NE(LastError().find("escriptor"), std::string::npos) << LastError();
}

TEST_F(RecorderTest, TableOfAnotherDispatchable) {
  const Copy one = MakeCopy(h());
  const Copy two = MakeCopy(h());
  one.Bind();
  h().recorder()->RecordDispatch(h().list(), two.compiled.Get(), one.table.Get());
  ExpectRemoved(h().dml(), E_INVALIDARG, "another dispatchable");
}

TEST_F(RecorderTest, EmptyTable) {
  const Copy copy = MakeCopy(h());
  ASSERT_EQ(copy.table->Reset(nullptr), S_OK);
  Record(h(), copy);
  ExpectRemoved(h().dml(), E_INVALIDARG, "without dispatchable");
}

TEST_F(RecorderTest, ObjectsOfAnotherDmlDevice) {
  for (int foreign = 0; foreign < 2; ++foreign) {
    auto& harness = MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
    DmlHarness other(harness.d3d(), DML_CREATE_DEVICE_FLAG_NONE);
    const Copy mine = MakeCopy(harness);
    const Copy theirs = MakeCopy(other);
    mine.Bind();
    theirs.Bind();
    harness.recorder()->RecordDispatch(harness.list(), (foreign == 0 ? theirs : mine).compiled.Get(),
                                       (foreign == 1 ? theirs : mine).table.Get());
    ExpectRemoved(harness.dml(), E_INVALIDARG, "another device");
    EXPECT_EQ(other.dml()->GetDeviceRemovedReason(), S_OK);
    // The other device keeps working, with a separate list.
    Record(other, theirs);
    other.ExecuteAndWait();
    EXPECT_EQ(Read(other, theirs.output.Get()), kData);
  }
}

TEST_F(RecorderTest, ListOfAnotherDirect3dDevice) {
  DmlHarness other;
  RemoveDirect3d(other.d3d());
  const Copy copy = MakeCopy(h());
  copy.Bind();
  h().recorder()->RecordDispatch(other.list(), copy.compiled.Get(), copy.table.Get());
  ExpectRemoved(h().dml(), E_INVALIDARG, "another Direct3D device");
}

TEST_F(RecorderTest, RecordingTakesASnapshot) {
  const Copy copy = MakeCopy(h());
  auto second = h().Upload<float>({5, 6, 7, 8});
  auto second_output = h().CreateBuffer(16);
  copy.Bind();
  Record(h(), copy);
  copy.BindTo(second.Get(), second_output.Get());
  h().UavBarrier();
  Record(h(), copy);
  copy.table->BindInputs(0, nullptr);
  h().ExecuteAndWait();
  EXPECT_EQ(Read(h(), copy.output.Get()), kData);
  EXPECT_EQ(Read(h(), second_output.Get()), (std::vector<float>{5, 6, 7, 8}));
}

TEST_F(RecorderTest, OneListSubmittedTwice) {
  const Copy copy = MakeCopy(h());
  copy.Bind();
  Record(h(), copy);
  h().CloseAndExecute();
  ID3D12CommandList* lists[] = {h().list()};
  h().queue()->ExecuteCommandLists(1, lists);
  h().Wait();
  ComPtr<ID3D12Fence> fence;
  ASSERT_EQ(h().d3d()->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)), S_OK);
  ASSERT_EQ(h().queue()->Signal(fence.Get(), 1), S_OK);
  ASSERT_EQ(fence->SetEventOnCompletion(1, nullptr), S_OK);
  h().Reopen();
  EXPECT_EQ(Read(h(), copy.output.Get()), kData);
}

TEST_F(RecorderTest, VolatileDescriptorsAreReadAtSubmission) {
  const Copy copy = MakeCopy(h(), DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE);
  Record(h(), copy);  // nothing bound yet
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  copy.Bind();
  h().ExecuteAndWait();
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(Read(h(), copy.output.Get()), kData);
}

TEST_F(RecorderTest, VolatileDescriptorsMayChangeBetweenSubmissions) {
  const Copy copy = MakeCopy(h(), DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE);
  auto second = h().Upload<float>({5, 6, 7, 8});
  auto second_output = h().CreateBuffer(16);
  Record(h(), copy);
  copy.Bind();
  h().CloseAndExecute();
  h().Wait();
  copy.BindTo(second.Get(), second_output.Get());
  ID3D12CommandList* lists[] = {h().list()};
  h().queue()->ExecuteCommandLists(1, lists);
  ComPtr<ID3D12Fence> fence;
  ASSERT_EQ(h().d3d()->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)), S_OK);
  ASSERT_EQ(h().queue()->Signal(fence.Get(), 1), S_OK);
  ASSERT_EQ(fence->SetEventOnCompletion(1, nullptr), S_OK);
  h().Reopen();
  EXPECT_EQ(Read(h(), copy.output.Get()), kData);
  EXPECT_EQ(Read(h(), second_output.Get()), (std::vector<float>{5, 6, 7, 8}));
}

TEST_F(RecorderTest, VolatileDescriptorsMissingAtSubmission) {
  const Copy copy = MakeCopy(h(), DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE);
  const Bindings out({{copy.output.Get()}});
  copy.table->BindOutputs(out.count(), out.data());
  Record(h(), copy);
  h().ExecuteAndWait();
  ExpectRemoved(h().dml(), DXGI_ERROR_INVALID_CALL, "InputTensor of ELEMENT_WISE_IDENTITY: nothing is bound");
  EXPECT_EQ(h().d3d()->GetDeviceRemovedReason(), S_OK);
  EXPECT_EQ(Read(h(), copy.output.Get()), kUntouched);
}

// The application may write the descriptors itself; they are then checked again.
TEST_F(RecorderTest, VolatileDescriptorsAreCheckedAtSubmission) {
  const Copy copy = MakeCopy(h(), DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE);
  const DML_BINDING_TABLE_DESC desc = h().NextTableDesc(copy.compiled.Get());
  ASSERT_EQ(copy.table->Reset(&desc), S_OK);
  copy.Bind();
  Record(h(), copy);
  D3D12_UNORDERED_ACCESS_VIEW_DESC view = {};
  view.Format = DXGI_FORMAT_R32_TYPELESS;
  view.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
  view.Buffer.NumElements = 2;  // too short
  view.Buffer.Flags = D3D12_BUFFER_UAV_FLAG_RAW;
  h().d3d()->CreateUnorderedAccessView(copy.input.Get(), nullptr, &view, desc.CPUDescriptorHandle);
  h().ExecuteAndWait();
  ExpectRemoved(h().dml(), E_INVALIDARG, "SizeInBytes is 8 but must be at least 16");
  EXPECT_EQ(Read(h(), copy.output.Get()), kUntouched);
}

// The table is in a heap that is not shader-visible; the application copies it.
TEST_F(RecorderTest, CpuAndGpuHandlesInDifferentHeaps) {
  const Copy copy = MakeCopy(h());
  DML_BINDING_TABLE_DESC desc = h().NextTableDesc(copy.compiled.Get());
  D3D12_DESCRIPTOR_HEAP_DESC heap_desc = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, desc.SizeInDescriptors,
                                          D3D12_DESCRIPTOR_HEAP_FLAG_NONE, 0};
  ComPtr<ID3D12DescriptorHeap> heap;
  ASSERT_EQ(h().d3d()->CreateDescriptorHeap(&heap_desc, IID_PPV_ARGS(&heap)), S_OK);
  const auto visible = desc.CPUDescriptorHandle;
  desc.CPUDescriptorHandle = heap->GetCPUDescriptorHandleForHeapStart();
  ASSERT_EQ(copy.table->Reset(&desc), S_OK) << LastError();
  copy.Bind();
  h().d3d()->CopyDescriptorsSimple(desc.SizeInDescriptors, visible, desc.CPUDescriptorHandle,
                                   D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
  Record(h(), copy);
  h().ExecuteAndWait();
  EXPECT_EQ(Read(h(), copy.output.Get()), kData);
}

TEST_F(RecorderTest, IndexOutOfRangeIsReportedWithTheDebugFlag) {
  auto& harness = MakeHarness(DML_CREATE_DEVICE_FLAG_DEBUG);
  ComPtr<ID3D12InfoQueue> messages;
  ASSERT_EQ(harness.d3d()->QueryInterface(IID_PPV_ARGS(&messages)), S_OK);
  messages->ClearStoredMessages();
  const auto op = ScatterNd::Page();
  ::testing::internal::CaptureStderr();
  const auto results =
      harness.Run(DML_OPERATOR_SCATTER_ND, &op.desc,
                  {ToBytes(kPageInput), ToBytes<uint32_t>({4, 99, 1, 7}), ToBytes(kPageUpdates)}, {32});
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(FromBytes<float>(results[0], 8), (std::vector<float>{1, 11, 3, 4, 9, 6, 7, 12}));
  ASSERT_GE(messages->GetNumStoredMessages(), 1u);
  SIZE_T size = 0;
  messages->GetMessage(0, nullptr, &size);
  std::vector<uint8_t> storage(size);
  auto* message = reinterpret_cast<D3D12_MESSAGE*>(storage.data());
  ASSERT_EQ(messages->GetMessage(0, message, &size), S_OK);
  EXPECT_NE(std::string(message->pDescription).find("99"), std::string::npos) << message->pDescription;
  EXPECT_EQ(harness.dml()->GetDeviceRemovedReason(), S_OK);
}

}  // namespace
}  // namespace anydml::test
