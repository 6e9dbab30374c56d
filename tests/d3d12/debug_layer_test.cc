// A separate program, because the debug layer is a switch of the process.
#include <poll.h>

#include <thread>

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

// The queue's own thread calls the callback, and cannot wait for itself.
TEST_F(DebugLayerTest, LastReleaseOfAQueueInACallback) {
  const auto references = [this] {
    device()->AddRef();
    return device()->Release();
  };
  const auto buffer = Buffer(64);
  const auto gate = CreateFence(device());
  Ptr<ID3D12InfoQueue1> messages;
  ASSERT_EQ(device()->QueryInterface(IID_PPV_ARGS(&messages)), S_OK);
  const ULONG before = references();
  struct Context {
    Ptr<ID3D12CommandQueue> queue;
    Event released;
  } context;
  context.queue = CreateQueue(device());
  DWORD cookie = 0;
  const auto release = [](D3D12_MESSAGE_CATEGORY, D3D12_MESSAGE_SEVERITY, D3D12_MESSAGE_ID, LPCSTR,
                          void* data) {
    auto* c = static_cast<Context*>(data);
    c->queue.Reset();
    const uint64_t one = 1;
    EXPECT_EQ(write(c->released.fd(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  };
  ASSERT_EQ(messages->RegisterMessageCallback(release, D3D12_MESSAGE_CALLBACK_FLAG_NONE, &context, &cookie),
            S_OK);
  Barrier(buffer.get(), D3D12_RESOURCE_STATE_COMMON, kUav);
  Barrier(buffer.get(), kSource, kDest);  // wrong: its state is UNORDERED_ACCESS
  ASSERT_EQ(list_->Close(), S_OK);
  ASSERT_EQ(context.queue->Wait(gate.get(), 1), S_OK);  // not before this thread is done with the queue
  Execute(context.queue.get(), list_.get());
  ASSERT_EQ(gate->Signal(1), S_OK);
  pollfd released = {context.released.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&released, 1, 60'000), 1);
  ASSERT_EQ(messages->UnregisterMessageCallback(cookie), S_OK);
  while (references() != before) std::this_thread::yield();  // the queue ends and releases the device
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
  ASSERT_EQ(list_->Reset(allocator_.get(), nullptr), S_OK);
}

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
  EXPECT_EQ(Contents(readback.get()), Numbers(4));  // it still works
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
