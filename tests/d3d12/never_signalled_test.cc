// All ways to wait for a fence, with one that is never signalled: removing the device ends the wait. (If a
// wait does not end, the test exceeds its time limit.)
#include <windows.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

enum class Removal { kRemoveDevice, kBadSubmission, kReleasedQueue };

class NeverSignalledTest : public D3D12Test, public ::testing::WithParamInterface<Removal> {
 protected:
  void SetUp() override {
    D3D12Test::SetUp();
    never_ = CreateFence(device());
  }
  void TearDown() override {
    never_.Reset();
    D3D12Test::TearDown();
  }

  ID3D12Fence* never() const { return never_.get(); }

  // Runs `wait`, which blocks until the device is removed.
  template <typename Wait>
  void ExpectEnds(Wait wait) {
    std::atomic<bool> ended{false};
    std::thread waiter([&] {
      wait();
      ended = true;
    });
    // Long enough to be asleep, not only about to check again.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(ended);
    Remove();
    waiter.join();
    EXPECT_NE(device()->GetDeviceRemovedReason(), S_OK);
    EXPECT_EQ(never()->GetCompletedValue(), UINT64_MAX);
  }

 private:
  void Remove() {
    auto queue = CreateQueue(device());
    switch (GetParam()) {
      case Removal::kRemoveDevice:
        device()->RemoveDevice();
        break;
      case Removal::kBadSubmission:
        Execute(queue.get(), nullptr);
        break;
      case Removal::kReleasedQueue:
        ASSERT_EQ(queue->Wait(CreateFence(device()).get(), 1), S_OK);
        queue.Reset();
        break;
    }
  }

  Ptr<ID3D12Fence> never_;
};

TEST_P(NeverSignalledTest, Thread) {
  ExpectEnds([this] { EXPECT_EQ(never()->SetEventOnCompletion(1, nullptr), S_OK); });
}

TEST_P(NeverSignalledTest, ThreadOfManyWaiters) {
  ExpectEnds([this] {
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i <= 16; ++i) {
      threads.emplace_back([this, i] { EXPECT_EQ(never()->SetEventOnCompletion(i, nullptr), S_OK); });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_P(NeverSignalledTest, Win32Event) {
  for (const BOOL manual : {FALSE, TRUE}) {
    const HANDLE event = CreateEvent(nullptr, manual, FALSE, nullptr);
    EXPECT_EQ(never()->SetEventOnCompletion(1, event), S_OK);
    if (manual) {  // the device was removed already
      EXPECT_EQ(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
    } else {
      ExpectEnds([event] { EXPECT_EQ(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0); });
    }
    EXPECT_TRUE(CloseHandle(event));
  }
}

TEST_P(NeverSignalledTest, OneOfSeveralWin32Events) {
  const auto reached = CreateFence(device(), 1);
  const HANDLE events[] = {CreateEvent(nullptr, FALSE, FALSE, nullptr),
                           CreateEvent(nullptr, TRUE, FALSE, nullptr)};
  EXPECT_EQ(reached->SetEventOnCompletion(1, events[0]), S_OK);
  EXPECT_EQ(never()->SetEventOnCompletion(7, events[1]), S_OK);
  ExpectEnds([&] { EXPECT_EQ(WaitForMultipleObjects(2, events, TRUE, INFINITE), WAIT_OBJECT_0); });
  for (const HANDLE event : events) EXPECT_TRUE(CloseHandle(event));
}

TEST_P(NeverSignalledTest, SeveralFences) {
  const auto reached = CreateFence(device(), 1);
  ID3D12Fence* const fences[] = {reached.get(), never()};
  const UINT64 values[] = {1, 1};
  ExpectEnds([&] {
    EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(fences, values, 2,
                                                          D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL, nullptr),
              S_OK);
  });
  Event event;
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(fences, values, 2, D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL,
                                                        event.handle()),
            S_OK);
  EXPECT_EQ(event.Take(), 1u);
}

// The queue waits, and so does a thread for the work behind it; a second queue waits for the first.
TEST_P(NeverSignalledTest, Queues) {
  const auto first = CreateQueue(device()), second = CreateQueue(device());
  const auto behind = CreateFence(device()), last = CreateFence(device());
  const auto upload = UploadBuffer(Numbers(4)), readback = ReadbackBuffer(4);
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  list->CopyResource(readback.get(), upload.get());
  ASSERT_EQ(list->Close(), S_OK);
  ASSERT_EQ(first->Wait(never(), 1), S_OK);
  Execute(first.get(), list.get());
  ASSERT_EQ(first->Signal(behind.get(), 1), S_OK);
  ASSERT_EQ(second->Wait(behind.get(), 1), S_OK);
  ASSERT_EQ(second->Signal(last.get(), 1), S_OK);
  ExpectEnds([&] { EXPECT_EQ(last->SetEventOnCompletion(1, nullptr), S_OK); });
  EXPECT_EQ(Contents(readback.get())[0], 0u);  // its reference is dropped
}

std::string NameOf(const ::testing::TestParamInfo<Removal>& info) {
  constexpr const char* kNames[] = {"RemoveDevice", "BadSubmission", "ReleasedQueue"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, NeverSignalledTest,
                         ::testing::Values(Removal::kRemoveDevice, Removal::kBadSubmission,
                                           Removal::kReleasedQueue),
                         NameOf);

}  // namespace
}  // namespace anydml::testing
