// A program of its own: the debug layer is a switch of the process.
#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

class DebugLayerTest : public D3D12Test {
 protected:
  void SetUp() override {
    {
      Ptr<ID3D12Debug1> debug;
      ASSERT_EQ(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)), S_OK);
      debug->EnableDebugLayer();
      debug->SetEnableGPUBasedValidation(TRUE);
    }
    D3D12Test::SetUp();
    Ptr<ID3D12InfoQueue> messages;
    ASSERT_EQ(device()->QueryInterface(IID_PPV_ARGS(&messages)), S_OK);
    messages->SetMuteDebugOutput(TRUE);
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
    ASSERT_EQ(list_->Reset(allocator_.get(), nullptr), S_OK);
  }
  void Barrier(ID3D12Resource* buffer, D3D12_RESOURCE_STATES before, D3D12_RESOURCE_STATES after) {
    const auto barrier = Transition(buffer, before, after);
    list_->ResourceBarrier(1, &barrier);
  }

  Ptr<ID3D12CommandQueue> queue_;
  Ptr<ID3D12CommandAllocator> allocator_;
  Ptr<ID3D12GraphicsCommandList4> list_;
};

constexpr auto kSource = D3D12_RESOURCE_STATE_COPY_SOURCE;
constexpr auto kDest = D3D12_RESOURCE_STATE_COPY_DEST;
constexpr auto kUav = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;

TEST_F(DebugLayerTest, DebugDevice) {
  Ptr<ID3D12DebugDevice> debug;
  ASSERT_EQ(device()->QueryInterface(IID_PPV_ARGS(&debug)), S_OK);
  Ptr<ID3D12DebugDevice1> debug1;
  ASSERT_EQ(debug->QueryInterface(IID_PPV_ARGS(&debug1)), S_OK);
  Ptr<ID3D12Device> back;
  ASSERT_EQ(debug1->QueryInterface(IID_PPV_ARGS(&back)), S_OK);
  EXPECT_EQ(back.get(), device());
  EXPECT_EQ(debug->ReportLiveDeviceObjects(D3D12_RLDO_SUMMARY), S_OK);
  EXPECT_TRUE(HasMessage(device(), "Live objects"));
}

TEST_F(DebugLayerTest, ProperProgramIsQuiet) {
  const auto upload = UploadBuffer(Numbers(4)), buffer = Buffer(16), readback = ReadbackBuffer(4);
  list_->CopyResource(buffer.get(), upload.get());
  Barrier(buffer.get(), kDest, kUav);
  Barrier(buffer.get(), kUav, kSource);
  list_->CopyResource(readback.get(), buffer.get());
  Run();
  list_->CopyResource(readback.get(), buffer.get());  // decayed to COMMON, promoted again
  Run();
  EXPECT_TRUE(Messages(device()).empty());
  EXPECT_EQ(Contents(readback.get()), Numbers(4));
}

TEST_F(DebugLayerTest, MismatchedBarrier) {
  const auto upload = UploadBuffer(Numbers(4)), buffer = Buffer(16);
  list_->CopyResource(buffer.get(), upload.get());
  Barrier(buffer.get(), kUav, kSource);
  Run();
  EXPECT_TRUE(HasMessage(device(), "StateBefore"));
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

TEST_F(DebugLayerTest, MissingBarrier) {
  const auto upload = UploadBuffer(Numbers(4)), buffer = Buffer(16), readback = ReadbackBuffer(4);
  list_->CopyResource(buffer.get(), upload.get());
  list_->CopyResource(readback.get(), buffer.get());
  Run();
  EXPECT_TRUE(HasMessage(device(), "CopyResource: needs the buffer in state"));
  EXPECT_EQ(Contents(readback.get()), Numbers(4));  // it works all the same
}

TEST_F(DebugLayerTest, UploadBuffersCannotBeWritten) {
  const auto a = UploadBuffer(Numbers(4)), b = UploadBuffer(Numbers(4));
  list_->CopyResource(a.get(), b.get());
  Run();
  EXPECT_TRUE(HasMessage(device(), "CopyResource: needs the buffer in state"));
}

TEST_F(DebugLayerTest, GetInterface) {
  Ptr<ID3D12Debug> debug;
  const GUID debug_class = {0xf2352aeb, 0xdd84, 0x49fe, {0xb9, 0x7b, 0xa9, 0xdc, 0xfd, 0xcc, 0x1b, 0x4f}};
  EXPECT_EQ(D3D12GetInterface(debug_class, IID_PPV_ARGS(&debug)), S_OK);
  EXPECT_EQ(D3D12GetInterface(GUID{}, IID_PPV_ARGS(&debug)), E_NOINTERFACE);
  EXPECT_EQ(D3D12GetDebugInterface(__uuidof(ID3D12Debug), nullptr), S_FALSE);
}

}  // namespace
}  // namespace anydml::testing
