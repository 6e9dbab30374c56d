#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

class CommandListTest : public D3D12Test {
 protected:
  void SetUp() override {
    D3D12Test::SetUp();
    queue_ = CreateQueue(device());
    allocator_ = CreateAllocator(device());
    list_ = CreateList(device(), allocator_.get());
  }
  void TearDown() override {
    list_.Reset();
    allocator_.Reset();
    queue_.Reset();
    D3D12Test::TearDown();
  }
  void Run() {
    ASSERT_EQ(list_->Close(), S_OK);
    Execute(queue_.get(), list_.get());
    Finish(queue_.get());
  }
  // Records with `record`, expects Close to fail, and reopens the list.
  void ExpectError(const std::function<void(ID3D12GraphicsCommandList4*)>& record, const std::string& text) {
    record(list_.get());
    EXPECT_EQ(list_->Close(), E_INVALIDARG) << text;
    EXPECT_TRUE(LastErrorHas(text));
    EXPECT_EQ(list_->Reset(allocator_.get(), nullptr), S_OK);
  }

  Ptr<ID3D12CommandQueue> queue_;
  Ptr<ID3D12CommandAllocator> allocator_;
  Ptr<ID3D12GraphicsCommandList4> list_;
};

TEST_F(CommandListTest, CopyResource) {
  const auto words = Numbers(1000);
  const auto upload = UploadBuffer(words), middle = Buffer(4000), readback = ReadbackBuffer(1000);
  list_->CopyResource(middle.get(), upload.get());
  const auto barrier =
      Transition(middle.get(), D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_COPY_SOURCE);
  list_->ResourceBarrier(1, &barrier);
  list_->CopyResource(readback.get(), middle.get());
  Run();
  EXPECT_EQ(Contents(readback.get()), words);
}

TEST_F(CommandListTest, CopyBufferRegion) {
  const auto upload = UploadBuffer(Numbers(8)), readback = ReadbackBuffer(8);
  list_->CopyBufferRegion(readback.get(), 4, upload.get(), 8, 12);
  list_->CopyBufferRegion(readback.get(), 0, upload.get(), 0, 0);
  Run();
  EXPECT_EQ(Contents(readback.get()), (std::vector<uint32_t>{0, 3, 4, 5, 0, 0, 0, 0}));
}

TEST_F(CommandListTest, CopyWithinABuffer) {
  const auto upload = UploadBuffer(Numbers(8)), buffer = Buffer(32), readback = ReadbackBuffer(8);
  list_->CopyResource(buffer.get(), upload.get());
  list_->CopyBufferRegion(buffer.get(), 0, buffer.get(), 16, 16);
  list_->CopyResource(readback.get(), buffer.get());
  Run();
  EXPECT_EQ(Contents(readback.get()), (std::vector<uint32_t>{5, 6, 7, 8, 5, 6, 7, 8}));
}

TEST_F(CommandListTest, CopyMisuse) {
  const auto a = Buffer(64), b = Buffer(128);
  ExpectError([&](auto* list) { list->CopyResource(a.get(), b.get()); }, "CopyResource");
  ExpectError([&](auto* list) { list->CopyResource(a.get(), a.get()); }, "same buffer");
  ExpectError([&](auto* list) { list->CopyResource(nullptr, a.get()); }, "pDstResource is null");
  ExpectError([&](auto* list) { list->CopyBufferRegion(a.get(), 0, b.get(), 0, 65); }, "destination");
  ExpectError([&](auto* list) { list->CopyBufferRegion(b.get(), 0, a.get(), 1, 64); }, "source");
  ExpectError([&](auto* list) { list->CopyBufferRegion(b.get(), UINT64_MAX, a.get(), 0, 2); }, "destination");
  ExpectError([&](auto* list) { list->CopyBufferRegion(a.get(), 0, b.get(), 0, UINT64_MAX); }, "destination");
  ExpectError([&](auto* list) { list->CopyBufferRegion(a.get(), 0, a.get(), 15, 16); }, "overlap");
  ExpectError([&](auto* list) { list->CopyBufferRegion(a.get(), 0, nullptr, 0, 16); }, "pSrcBuffer is null");
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

TEST_F(CommandListTest, GraphicsPutsTheListInError) {
  ExpectError([](auto* list) { list->DrawInstanced(3, 1, 0, 0); }, "DrawInstanced");
  ExpectError([](auto* list) { list->Dispatch(1, 1, 1); }, "Dispatch");
  ExpectError([](auto* list) { list->DispatchRays(nullptr); }, "DispatchRays");
  ExpectError([](auto* list) { list->SetComputeRoot32BitConstant(0, 0, 0); }, "SetComputeRoot32BitConstant");
  ExpectError([](auto* list) { list->RSSetViewports(0, nullptr); }, "RSSetViewports");
}

TEST_F(CommandListTest, HarmlessCommands) {
  const auto buffer = Buffer(64);
  list_->SetComputeRootSignature(nullptr);
  list_->SetPipelineState(nullptr);
  list_->ClearState(nullptr);
  list_->BeginEvent(0, "event", 6);
  list_->SetMarker(0, "marker", 7);
  list_->EndEvent();
  list_->DiscardResource(buffer.get(), nullptr);
  list_->SetDescriptorHeaps(0, nullptr);
  list_->SetPredication(nullptr, 0, D3D12_PREDICATION_OP_EQUAL_ZERO);
  list_->SetProtectedResourceSession(nullptr);
  list_->ResourceBarrier(0, nullptr);
  Run();
}

TEST_F(CommandListTest, Barriers) {
  const auto a = Buffer(64), b = Buffer(64);
  D3D12_RESOURCE_BARRIER barriers[4]{};
  barriers[0] = Transition(a.get(), D3D12_RESOURCE_STATE_COMMON, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
  barriers[1].Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
  barriers[2].Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
  barriers[2].UAV.pResource = a.get();
  barriers[3].Type = D3D12_RESOURCE_BARRIER_TYPE_ALIASING;
  barriers[3].Aliasing = {a.get(), b.get()};
  list_->ResourceBarrier(4, barriers);
  barriers[3].Aliasing = {nullptr, nullptr};
  list_->ResourceBarrier(4, barriers);
  Run();
}

TEST_F(CommandListTest, BarrierMisuse) {
  const auto a = Buffer(64);
  const auto with = [&](D3D12_RESOURCE_BARRIER barrier) {
    return [barrier](ID3D12GraphicsCommandList4* list) { list->ResourceBarrier(1, &barrier); };
  };
  const auto common = D3D12_RESOURCE_STATE_COMMON, dest = D3D12_RESOURCE_STATE_COPY_DEST;
  ExpectError(with(Transition(nullptr, common, dest)), "pResource is null");
  ExpectError(with(Transition(a.get(), dest, dest)), "both");
  auto barrier = Transition(a.get(), common, dest);
  barrier.Transition.Subresource = 1;
  ExpectError(with(barrier), "Subresource");
  barrier = Transition(a.get(), common, dest);
  barrier.Type = static_cast<D3D12_RESOURCE_BARRIER_TYPE>(9);
  ExpectError(with(barrier), "Type is 9");
  ExpectError([](auto* list) { list->ResourceBarrier(1, nullptr); }, "pBarriers");
}

TEST_F(CommandListTest, StatesOfAList) {
  EXPECT_EQ(list_->GetType(), D3D12_COMMAND_LIST_TYPE_DIRECT);
  EXPECT_EQ(list_->Reset(allocator_.get(), nullptr), E_FAIL);  // still open
  EXPECT_EQ(list_->Close(), S_OK);
  EXPECT_EQ(list_->Close(), E_FAIL);
  list_->ClearState(nullptr);
  EXPECT_TRUE(HasMessage(device(), "ClearState: the list is closed"));
  EXPECT_EQ(list_->Reset(nullptr, nullptr), E_INVALIDARG);
  EXPECT_EQ(list_->Reset(allocator_.get(), nullptr), S_OK);
  EXPECT_EQ(list_->Close(), S_OK);
}

TEST_F(CommandListTest, CreateCommandList1IsClosed) {
  Ptr<ID3D12GraphicsCommandList> list;
  ASSERT_EQ(device()->CreateCommandList1(0, D3D12_COMMAND_LIST_TYPE_COMPUTE, D3D12_COMMAND_LIST_FLAG_NONE,
                                         IID_PPV_ARGS(&list)),
            S_OK);
  EXPECT_EQ(list->Close(), E_FAIL);
  const auto allocator = CreateAllocator(device(), D3D12_COMMAND_LIST_TYPE_COMPUTE);
  EXPECT_EQ(list->Reset(allocator.get(), nullptr), S_OK);
  EXPECT_EQ(list->Close(), S_OK);
}

TEST_F(CommandListTest, AllocatorServesOneListAtATime) {
  Ptr<ID3D12GraphicsCommandList> second;
  EXPECT_EQ(device()->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, allocator_.get(), nullptr,
                                        IID_PPV_ARGS(&second)),
            E_FAIL);
  EXPECT_EQ(allocator_->Reset(), E_FAIL);
  EXPECT_TRUE(LastErrorHas("recording"));
  EXPECT_EQ(list_->Close(), S_OK);
  EXPECT_EQ(allocator_->Reset(), S_OK);
  EXPECT_EQ(device()->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, allocator_.get(), nullptr,
                                        IID_PPV_ARGS(&second)),
            S_OK);
  EXPECT_EQ(list_->Reset(allocator_.get(), nullptr), E_FAIL);
  second.Reset();  // a list that is destroyed while it records frees its allocator
  EXPECT_EQ(allocator_->Reset(), S_OK);
}

TEST_F(CommandListTest, TypesMustMatch) {
  const auto copy = CreateAllocator(device(), D3D12_COMMAND_LIST_TYPE_COPY);
  Ptr<ID3D12GraphicsCommandList> list;
  EXPECT_EQ(device()->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, copy.get(), nullptr,
                                        IID_PPV_ARGS(&list)),
            E_INVALIDARG);
  Ptr<ID3D12CommandAllocator> allocator;
  EXPECT_EQ(device()->CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_BUNDLE, IID_PPV_ARGS(&allocator)),
            E_NOTIMPL);
  EXPECT_EQ(
      device()->CreateCommandAllocator(static_cast<D3D12_COMMAND_LIST_TYPE>(77), IID_PPV_ARGS(&allocator)),
      E_INVALIDARG);
}

TEST_F(CommandListTest, CopyListsCopy) {
  const auto type = D3D12_COMMAND_LIST_TYPE_COPY;
  const auto queue = CreateQueue(device(), type);
  const auto allocator = CreateAllocator(device(), type);
  const auto list = CreateList(device(), allocator.get(), type);
  const auto upload = UploadBuffer(Numbers(4)), readback = ReadbackBuffer(4);
  list->CopyResource(readback.get(), upload.get());
  ASSERT_EQ(list->Close(), S_OK);
  Execute(queue.get(), list.get());
  Finish(queue.get());
  EXPECT_EQ(Contents(readback.get()), Numbers(4));
  ASSERT_EQ(list->Reset(allocator.get(), nullptr), S_OK);
  const auto heap = CreateDescriptors(device(), 1, true);
  ID3D12DescriptorHeap* heaps[] = {heap.get()};
  list->SetDescriptorHeaps(1, heaps);
  EXPECT_EQ(list->Close(), E_INVALIDARG);
}

TEST_F(CommandListTest, WriteBufferImmediate) {
  const auto buffer = ReadbackBuffer(4);
  const D3D12_WRITEBUFFERIMMEDIATE_PARAMETER writes[] = {{buffer->GetGPUVirtualAddress() + 4, 7},
                                                         {buffer->GetGPUVirtualAddress() + 12, 9}};
  list_->WriteBufferImmediate(2, writes, nullptr);
  Run();
  EXPECT_EQ(Contents(buffer.get()), (std::vector<uint32_t>{0, 7, 0, 9}));
  ASSERT_EQ(list_->Reset(allocator_.get(), nullptr), S_OK);
  const D3D12_WRITEBUFFERIMMEDIATE_PARAMETER beyond = {buffer->GetGPUVirtualAddress() + 16, 1};
  ExpectError([&](auto* list) { list->WriteBufferImmediate(1, &beyond, nullptr); }, "Dest");
  ExpectError([&](auto* list) { list->WriteBufferImmediate(1, nullptr, nullptr); }, "pParams");
}

TEST_F(CommandListTest, AtomicCopies) {
  const auto upload = UploadBuffer(Numbers(4)), readback = ReadbackBuffer(4);
  list_->AtomicCopyBufferUINT(readback.get(), 0, upload.get(), 12, 0, nullptr, nullptr);
  list_->AtomicCopyBufferUINT64(readback.get(), 8, upload.get(), 0, 0, nullptr, nullptr);
  Run();
  EXPECT_EQ(Contents(readback.get()), (std::vector<uint32_t>{4, 0, 1, 2}));
}

class ClearTest : public CommandListTest {
 protected:
  void SetUp() override {
    CommandListTest::SetUp();
    visible_ = CreateDescriptors(device(), 4, true);
    hidden_ = CreateDescriptors(device(), 4, false);
    buffer_ = Buffer(64, D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
  }
  void TearDown() override {
    visible_.Reset();
    hidden_.Reset();
    buffer_.Reset();
    CommandListTest::TearDown();
  }
  void View(DXGI_FORMAT format, UINT first, UINT count,
            D3D12_BUFFER_UAV_FLAGS flags = D3D12_BUFFER_UAV_FLAG_NONE) {
    D3D12_UNORDERED_ACCESS_VIEW_DESC desc{};
    desc.Format = format;
    desc.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
    desc.Buffer = {first, count, 0, 0, flags};
    for (auto* heap : {visible_.get(), hidden_.get()}) {
      device()->CreateUnorderedAccessView(buffer_.get(), nullptr, &desc,
                                          heap->GetCPUDescriptorHandleForHeapStart());
    }
  }
  void Clear(const std::vector<UINT>& values) {
    ID3D12DescriptorHeap* heaps[] = {visible_.get()};
    list_->SetDescriptorHeaps(1, heaps);
    list_->ClearUnorderedAccessViewUint(visible_->GetGPUDescriptorHandleForHeapStart(),
                                        hidden_->GetCPUDescriptorHandleForHeapStart(), buffer_.get(),
                                        values.data(), 0, nullptr);
  }
  std::vector<uint32_t> ClearAndRead(const std::vector<UINT>& values) {
    const auto readback = ReadbackBuffer(16);
    Clear(values);
    list_->CopyResource(readback.get(), buffer_.get());
    Run();
    return Contents(readback.get());
  }

  Ptr<ID3D12DescriptorHeap> visible_, hidden_;
  Ptr<ID3D12Resource> buffer_;
};

TEST_F(ClearTest, RawView) {
  View(DXGI_FORMAT_R32_TYPELESS, 2, 3, D3D12_BUFFER_UAV_FLAG_RAW);
  EXPECT_EQ(
      ClearAndRead({0xDEADBEEF, 1, 2, 3}),
      (std::vector<uint32_t>{0, 0, 0xDEADBEEF, 0xDEADBEEF, 0xDEADBEEF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(ClearTest, FourComponents) {
  View(DXGI_FORMAT_R32G32B32A32_UINT, 1, 3);
  EXPECT_EQ(ClearAndRead({1, 2, 3, 4}),
            (std::vector<uint32_t>{0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST_F(ClearTest, Bytes) {
  View(DXGI_FORMAT_R8_UINT, 0, 6);  // not a multiple of 4
  auto words = ClearAndRead({0xAB, 0, 0, 0});
  EXPECT_EQ(words[0], 0xABABABABu);
  EXPECT_EQ(words[1], 0x0000ABABu);
}

TEST_F(ClearTest, Halves) {
  View(DXGI_FORMAT_R16G16_UINT, 0, 2);
  auto words = ClearAndRead({1, 2, 0, 0});
  EXPECT_EQ(words[0], 0x00020001u);
  EXPECT_EQ(words[1], 0x00020001u);
  EXPECT_EQ(words[2], 0u);
}

TEST_F(ClearTest, Misuse) {
  View(DXGI_FORMAT_R32_UINT, 0, 16);
  const auto gpu = visible_->GetGPUDescriptorHandleForHeapStart();
  const auto cpu = hidden_->GetCPUDescriptorHandleForHeapStart();
  const UINT values[4] = {};
  ExpectError(
      [&](auto* list) { list->ClearUnorderedAccessViewUint(gpu, cpu, buffer_.get(), values, 0, nullptr); },
      "SetDescriptorHeaps");
  ID3D12DescriptorHeap* heaps[] = {visible_.get()};
  const auto clear = [&](D3D12_CPU_DESCRIPTOR_HANDLE handle, ID3D12Resource* resource, const UINT* v,
                         UINT rects) {
    return [=, &heaps](ID3D12GraphicsCommandList4* list) {
      list->SetDescriptorHeaps(1, heaps);
      list->ClearUnorderedAccessViewUint(gpu, handle, resource, v, rects, nullptr);
    };
  };
  ExpectError(clear(cpu, nullptr, values, 0), "pResource is null");
  ExpectError(clear(cpu, buffer_.get(), nullptr, 0), "Values is null");
  ExpectError(clear(cpu, buffer_.get(), values, 1), "NumRects");
  ExpectError(clear({12345}, buffer_.get(), values, 0), "ViewCPUHandle");
  ExpectError(clear({cpu.ptr + 32}, buffer_.get(), values, 0), "does not hold");
  const auto other = Buffer(64);
  ExpectError(clear(cpu, other.get(), values, 0), "does not hold");
}

TEST_F(ClearTest, DescriptorHeapMisuse) {
  ID3D12DescriptorHeap* hidden[] = {hidden_.get()};
  ExpectError([&](auto* list) { list->SetDescriptorHeaps(1, hidden); }, "not shader visible");
  ID3D12DescriptorHeap* twice[] = {visible_.get(), visible_.get()};
  ExpectError([&](auto* list) { list->SetDescriptorHeaps(2, twice); }, "two heaps");
  ID3D12DescriptorHeap* null[] = {nullptr};
  ExpectError([&](auto* list) { list->SetDescriptorHeaps(1, null); }, "ppDescriptorHeaps[0]");
  ExpectError([&](auto* list) { list->SetDescriptorHeaps(1, nullptr); }, "null");
}

}  // namespace
}  // namespace anydml::testing
