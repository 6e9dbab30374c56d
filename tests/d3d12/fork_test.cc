// A forked child does not have its parent's threads. Using the parent's objects fails at once with a message;
// releasing them does not hang; new devices work.
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

bool Expect(bool right, const char* what) {
  if (!right)
    std::fprintf(stderr, "in the child: not %s; the last error is \"%s\"\n", what,
                 AnyDmlGetLastErrorMessage());
  return right;
}
#define EXPECT_IN_CHILD(condition) right = Expect(condition, #condition) && right

bool RefusedFor(const std::string& method) {
  return AnyDmlGetLastErrorMessage() == method +
                                            ": the device belongs to the parent process, whose threads this "
                                            "one does not have; create another one after the fork";
}

class ForkTest : public D3D12Test {
 protected:
  // Whether `body` returned true in a forked child within some seconds.
  template <typename Body>
  static ::testing::AssertionResult InChild(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      _exit(body() ? 0 : 1);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) return ::testing::AssertionFailure() << "no child";
    if (WIFSIGNALED(status))
      return ::testing::AssertionFailure() << "it ended by signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) != 0) return ::testing::AssertionFailure() << "it says what is wrong above";
    return ::testing::AssertionSuccess();
  }

  // Copies through a queue of `device`.
  static bool Works(ID3D12Device* device) {
    const auto source = CreateBuffer(device, 256, D3D12_HEAP_TYPE_UPLOAD);
    Fill(source.get(), Numbers(64));
    const auto target = CreateBuffer(device, 256, D3D12_HEAP_TYPE_READBACK);
    const auto queue = CreateQueue(device);
    const auto allocator = CreateAllocator(device);
    const auto list = CreateList(device, allocator.get());
    list->CopyResource(target.get(), source.get());
    list->Close();
    Execute(queue.get(), list.get());
    const auto fence = CreateFence(device);
    queue->Signal(fence.get(), 1);
    fence->SetEventOnCompletion(1, nullptr);
    return Contents(target.get()) == Numbers(64);
  }
};

TEST_F(ForkTest, TheParentsObjectsFailAtOnce) {
  auto queue = CreateQueue(device());
  auto fence = CreateFence(device());
  auto allocator = CreateAllocator(device());
  auto list = CreateList(device(), allocator.get());
  ASSERT_EQ(list->Close(), S_OK);
  Execute(queue.get(), list.get());
  Finish(queue.get());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // its thread is asleep
  EXPECT_TRUE(InChild([&] {
    bool right = true;
    AnyDmlClearLastError();
    Execute(queue.get(), list.get());
    EXPECT_IN_CHILD(RefusedFor("ID3D12CommandQueue::ExecuteCommandLists"));
    EXPECT_IN_CHILD(queue->Signal(fence.get(), 1) == DXGI_ERROR_DEVICE_REMOVED);
    EXPECT_IN_CHILD(RefusedFor("ID3D12CommandQueue::Signal"));
    EXPECT_IN_CHILD(queue->Wait(fence.get(), 1) == DXGI_ERROR_DEVICE_REMOVED);
    EXPECT_IN_CHILD(RefusedFor("ID3D12CommandQueue::Wait"));
    EXPECT_IN_CHILD(fence->SetEventOnCompletion(1, nullptr) == DXGI_ERROR_DEVICE_REMOVED);
    EXPECT_IN_CHILD(RefusedFor("ID3D12Fence::SetEventOnCompletion"));
    EXPECT_IN_CHILD(fence->GetCompletedValue() == UINT64_MAX);
    ID3D12Fence* fences[] = {fence.get()};
    const UINT64 values[] = {1};
    EXPECT_IN_CHILD(device()->SetEventOnMultipleFenceCompletion(fences, values, 1,
                                                                D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL,
                                                                nullptr) == DXGI_ERROR_DEVICE_REMOVED);
    EXPECT_IN_CHILD(device()->GetDeviceRemovedReason() == DXGI_ERROR_DEVICE_REMOVED);
    const D3D12_COMMAND_QUEUE_DESC desc = {};
    void* out = nullptr;
    EXPECT_IN_CHILD(device()->CreateCommandQueue(&desc, __uuidof(ID3D12CommandQueue), &out) ==
                    DXGI_ERROR_DEVICE_REMOVED);
    EXPECT_IN_CHILD(RefusedFor("CreateCommandQueue"));
    list.Reset();
    allocator.Reset();
    fence.Reset();
    queue.Reset();
    ReleaseDevice();
    return right;
  }));
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);  // the parent is not affected
  Finish(queue.get());
}

TEST_F(ForkTest, AChildHasDevicesOfItsOwn) {
  const LUID luid = device()->GetAdapterLuid();
  const std::string adapter = AnyDmlGetAdapterId(static_cast<uint64_t>(luid.HighPart) << 32 | luid.LowPart);
  if (adapter != "cpu") GTEST_SKIP() << "a driver does not outlive a fork";
  ASSERT_TRUE(Works(device()));
  EXPECT_TRUE(InChild([&] {
    bool right = true;
    const auto mine = CreateDevice();
    EXPECT_IN_CHILD(mine.get() != device());
    EXPECT_IN_CHILD(Works(mine.get()));
    EXPECT_IN_CHILD(
        InChild([&] { return CreateDevice().get() != mine.get() && Works(CreateDevice().get()); }));
    return right;
  }));
  EXPECT_TRUE(Works(device()));
}

}  // namespace
}  // namespace anydml::testing
