// AnyDmlCreateBufferFromMemory: buffers over memory that others own. On a GPU this is the memory of another
// buffer, by its virtual address.
#include <atomic>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

void Count(void* context) { ++*static_cast<std::atomic<int>*>(context); }

class ForeignMemoryTest : public D3D12Test {
 protected:
  void SetUp() override {
    D3D12Test::SetUp();
    owner_ = Buffer(kAlignment);
  }
  void TearDown() override {
    owner_.Reset();
    D3D12Test::TearDown();
  }

  std::byte* memory() const { return reinterpret_cast<std::byte*>(owner_->GetGPUVirtualAddress()); }
  bool on_cpu() { return std::string(AnyDmlGetAdapterId(Luid())) == "cpu"; }

  HRESULT Create(void* address, uint64_t bytes, ID3D12Resource** buffer) {
    return AnyDmlCreateBufferFromMemory(device(), address, bytes, Count, &released_, buffer);
  }
  Ptr<ID3D12Resource> Over(void* address, uint64_t bytes) {
    Ptr<ID3D12Resource> buffer;
    EXPECT_EQ(Create(address, bytes, &buffer), S_OK) << AnyDmlGetLastErrorMessage();
    return buffer;
  }
  // Copies `bytes` from one buffer to another, and waits.
  void Copy(ID3D12Resource* to, ID3D12Resource* from, uint64_t bytes) {
    const auto queue = CreateQueue(device());
    const auto allocator = CreateAllocator(device());
    const auto list = CreateList(device(), allocator.get());
    list->CopyBufferRegion(to, 0, from, 0, bytes);
    ASSERT_EQ(list->Close(), S_OK);
    Execute(queue.get(), list.get());
    Finish(queue.get());
  }

  std::atomic<int> released_{0};

 private:
  uint64_t Luid() {
    const LUID luid = device()->GetAdapterLuid();
    return uint64_t{luid.LowPart} | static_cast<uint64_t>(luid.HighPart) << 32;
  }

  Ptr<ID3D12Resource> owner_;
};

TEST_F(ForeignMemoryTest, IsTheMemoryItself) {
  const auto words = Numbers(16);
  const auto upload = UploadBuffer(words);
  const auto readback = ReadbackBuffer(16);
  {
    const auto written = Over(memory() + 64, 64);
    EXPECT_EQ(written->GetGPUVirtualAddress(), reinterpret_cast<uintptr_t>(memory()) + 64);
    EXPECT_EQ(written->GetDesc().Width, 64u);
    EXPECT_EQ(written->GetDesc().Flags, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
    Copy(written.get(), upload.get(), 64);
  }
  EXPECT_EQ(released_, 1);
  const auto read = Over(memory() + 64, 64);
  Copy(readback.get(), read.get(), 64);
  EXPECT_EQ(Contents(readback.get()), words);
}

// The buffer is larger than its memory: the bytes beyond the memory are neither written nor read.
TEST_F(ForeignMemoryTest, NothingBeyondTheMemory) {
  const auto upload = UploadBuffer({0x11111111, 0x22222222, 0x33333333, 0x44444444});
  const auto readback = ReadbackBuffer(4);
  const auto all = Over(memory(), 16);
  Copy(all.get(), upload.get(), 16);
  {
    const auto begin = Over(memory(), 5);
    ASSERT_EQ(begin->GetDesc().Width, 8u);
    const auto other = UploadBuffer({0xAAAAAAAA, 0xBBBBBBBB});
    Copy(begin.get(), other.get(), 8);
    Copy(readback.get(), all.get(), 16);
    EXPECT_EQ(Contents(readback.get()),
              (std::vector<uint32_t>{0xAAAAAAAA, 0x222222BB, 0x33333333, 0x44444444}));
    Copy(readback.get(), upload.get(), 16);
    Copy(readback.get(), begin.get(), 8);
    EXPECT_EQ(Contents(readback.get()),
              (std::vector<uint32_t>{0xAAAAAAAA, 0x222222BB, 0x33333333, 0x44444444}));
  }
}

TEST_F(ForeignMemoryTest, HostMemoryOnTheCpuOnly) {
  std::vector<uint32_t> words = Numbers(4);
  Ptr<ID3D12Resource> buffer;
  const HRESULT hr = Create(words.data(), 16, &buffer);
  if (!on_cpu()) {
    EXPECT_EQ(hr, E_INVALIDARG);
    EXPECT_TRUE(LastErrorHas("which is host memory; it must be device memory of cuda:0"));
    EXPECT_EQ(released_, 0);
    return;
  }
  ASSERT_EQ(hr, S_OK);
  Copy(buffer.get(), UploadBuffer(Numbers(4, 7)).get(), 16);
  EXPECT_EQ(words, Numbers(4, 7));
}

TEST_F(ForeignMemoryTest, AnyAddressOnTheCpuMultiplesOf16OnAGpu) {
  Ptr<ID3D12Resource> buffer;
  const HRESULT hr = Create(memory() + 4, 5, &buffer);
  if (!on_cpu()) {
    EXPECT_EQ(hr, E_INVALIDARG);
    EXPECT_TRUE(LastErrorHas("must be aligned to 16 bytes on cuda:0"));
    return;
  }
  ASSERT_EQ(hr, S_OK);
  EXPECT_EQ(buffer->GetDesc().Width, 8u);  // sizes of tensors are rounded this way
}

TEST_F(ForeignMemoryTest, IsReleasedWhenNothingInFlightUsesIt) {
  const auto queue = CreateQueue(device());
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  const auto upload = UploadBuffer(Numbers(4));
  const auto gate = CreateFence(device());
  auto buffer = Over(memory(), 16);
  list->CopyBufferRegion(buffer.get(), 0, upload.get(), 0, 16);
  ASSERT_EQ(list->Close(), S_OK);
  ASSERT_EQ(queue->Wait(gate.get(), 1), S_OK);
  Execute(queue.get(), list.get());
  buffer.Reset();  // too early, which must not crash the library
  EXPECT_EQ(released_, 0);
  ASSERT_EQ(gate->Signal(1), S_OK);
  Finish(queue.get());
  EXPECT_EQ(released_, 1);
}

TEST_F(ForeignMemoryTest, NobodyNeedsToBeTold) {
  Ptr<ID3D12Resource> buffer;
  EXPECT_EQ(AnyDmlCreateBufferFromMemory(device(), memory(), 16, nullptr, nullptr, &buffer), S_OK);
}

TEST_F(ForeignMemoryTest, BadArguments) {
  Ptr<ID3D12Resource> buffer;
  EXPECT_EQ(Create(nullptr, 16, &buffer), E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("AnyDmlCreateBufferFromMemory: memory is null"));
  EXPECT_EQ(Create(memory(), 0, &buffer), E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("bytes is 0; it must be at least 1"));
  EXPECT_EQ(Create(memory(), UINT64_MAX, &buffer), E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("end within the address space"));
  EXPECT_EQ(AnyDmlCreateBufferFromMemory(nullptr, memory(), 16, Count, &released_, &buffer), E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("device is null"));
  EXPECT_EQ(AnyDmlCreateBufferFromMemory(device(), memory(), 16, Count, &released_, nullptr), E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("buffer is null"));
  EXPECT_FALSE(buffer);
  EXPECT_EQ(released_, 0);
  device()->RemoveDevice();
  EXPECT_EQ(Create(memory(), 16, &buffer), DXGI_ERROR_DEVICE_REMOVED);
  EXPECT_EQ(released_, 0);
}

TEST_F(ForeignMemoryTest, StreamOfAQueue) {
  EXPECT_EQ(AnyDmlGetCudaStream(nullptr), nullptr);
  const auto queue = CreateQueue(device());
  EXPECT_EQ(AnyDmlGetCudaStream(queue.get()) == nullptr, on_cpu());
}

}  // namespace
}  // namespace anydml::testing
