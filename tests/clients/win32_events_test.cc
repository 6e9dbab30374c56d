// Win32 events on eventfd.
#include <windows.h>

#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

using Clock = std::chrono::steady_clock;

int64_t MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

class Event {
 public:
  explicit Event(bool manual_reset, bool signalled = false)
      : handle_(CreateEvent(nullptr, manual_reset, signalled, nullptr)) {
    EXPECT_NE(handle_, nullptr);
  }
  ~Event() { EXPECT_TRUE(CloseHandle(handle_)); }
  operator HANDLE() const { return handle_; }

 private:
  HANDLE handle_;
};

int FdOf(HANDLE handle) { return static_cast<int>(reinterpret_cast<intptr_t>(handle) & 0xffffffff); }

TEST(Events, HandleLayout) {
  const Event automatic(false);
  const Event manual(true);
  EXPECT_EQ(reinterpret_cast<intptr_t>(HANDLE{automatic}) >> 32, 0);
  EXPECT_EQ(reinterpret_cast<intptr_t>(HANDLE{manual}) >> 32, 1);
  EXPECT_GT(FdOf(automatic), 0);
  EXPECT_GT(FdOf(manual), 0);
}

// The action of the Direct3D 12 library when a fence completes.
TEST(Events, EightBytesSignal) {
  for (bool manual : {false, true}) {
    const Event event(manual);
    const uint64_t one = 1;
    ASSERT_EQ(write(FdOf(event), &one, sizeof(one)), 8);
    EXPECT_EQ(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
  }
}

TEST(Events, NeverDescriptorZero) {
  const int saved = dup(0);
  close(0);
  HANDLE event = CreateEvent(nullptr, FALSE, TRUE, nullptr);
  dup2(saved, 0);
  close(saved);
  ASSERT_NE(event, nullptr);
  EXPECT_NE(FdOf(event), 0);
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
  EXPECT_TRUE(CloseHandle(event));
}

TEST(Events, AutoResetIsConsumedByOneWait) {
  const Event event(false);
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
  SetEvent(event);
  SetEvent(event);  // Signals do not add up.
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
}

TEST(Events, ManualResetStaysUntilReset) {
  const Event event(true);
  SetEvent(event);
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
  EXPECT_EQ(WaitForSingleObjectEx(event, 0, FALSE), WAIT_OBJECT_0);
  EXPECT_TRUE(ResetEvent(event));
  EXPECT_TRUE(ResetEvent(event));
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
}

TEST(Events, InitialState) {
  EXPECT_EQ(WaitForSingleObject(Event(false, true), 0), WAIT_OBJECT_0);
  EXPECT_EQ(WaitForSingleObject(Event(true, true), 0), WAIT_OBJECT_0);
}

TEST(Events, CreateEventEx) {
  HANDLE event =
      CreateEventEx(nullptr, nullptr, CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET, EVENT_ALL_ACCESS);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
  EXPECT_EQ(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
  CloseHandle(event);
}

TEST(Events, NamesAreRefused) {
  EXPECT_EQ(CreateEvent(nullptr, FALSE, FALSE, "name"), nullptr);
  EXPECT_EQ(GetLastError(), ERROR_NOT_SUPPORTED);
  EXPECT_EQ(CreateEventW(nullptr, FALSE, FALSE, L"name"), nullptr);
}

TEST(Events, TimeoutLastsAsLongAsAsked) {
  const Event event(false);
  const auto start = Clock::now();
  EXPECT_EQ(WaitForSingleObject(event, 30), WAIT_TIMEOUT);
  EXPECT_GE(MillisecondsSince(start), 29);
}

TEST(Events, WakesAnotherThread) {
  const Event event(false);
  std::thread setter([&] {
    Sleep(10);
    SetEvent(event);
  });
  EXPECT_EQ(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
  setter.join();
}

TEST(Events, EachAutoResetSignalReleasesOneWaiter) {
  const Event event(false);
  std::atomic<int> released{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      EXPECT_EQ(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
      ++released;
    });
  }
  for (int i = 1; i <= 4; ++i) {
    SetEvent(event);
    while (released < i) std::this_thread::yield();
    EXPECT_EQ(released, i);
  }
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(Events, BadHandles) {
  for (HANDLE handle : {HANDLE{nullptr}, INVALID_HANDLE_VALUE}) {
    SetLastError(ERROR_SUCCESS);
    EXPECT_EQ(WaitForSingleObject(handle, 0), WAIT_FAILED);
    EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    EXPECT_FALSE(SetEvent(handle));
    EXPECT_FALSE(ResetEvent(handle));
    EXPECT_FALSE(CloseHandle(handle));
  }
  HANDLE closed = CreateEvent(nullptr, FALSE, FALSE, nullptr);
  CloseHandle(closed);
  EXPECT_EQ(WaitForSingleObject(closed, 0), WAIT_FAILED);
  EXPECT_FALSE(SetEvent(closed));
  EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
}

TEST(WaitForMultiple, AnyTakesTheLowestAndOnlyThat) {
  const Event a(false);
  const Event b(false, true);
  const Event c(false, true);
  const HANDLE handles[] = {a, b, c};
  EXPECT_EQ(WaitForMultipleObjects(3, handles, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
  EXPECT_EQ(WaitForMultipleObjects(3, handles, FALSE, INFINITE), WAIT_OBJECT_0 + 2);
  EXPECT_EQ(WaitForMultipleObjects(3, handles, FALSE, 0), WAIT_TIMEOUT);
}

TEST(WaitForMultiple, AllTakesNothingUntilEveryEventIsSignalled) {
  const Event a(false, true);
  const Event b(true);
  const HANDLE handles[] = {a, b};
  EXPECT_EQ(WaitForMultipleObjects(2, handles, TRUE, 10), WAIT_TIMEOUT);
  SetEvent(b);
  EXPECT_EQ(WaitForMultipleObjects(2, handles, TRUE, INFINITE), WAIT_OBJECT_0);
  EXPECT_EQ(WaitForSingleObject(a, 0), WAIT_TIMEOUT);
  EXPECT_EQ(WaitForSingleObject(b, 0), WAIT_OBJECT_0);
}

TEST(WaitForMultiple, AllAcrossThreads) {
  const Event a(false);
  const Event b(false);
  std::thread setter([&] {
    SetEvent(b);
    Sleep(10);
    SetEvent(a);
  });
  const HANDLE handles[] = {a, b};
  EXPECT_EQ(WaitForMultipleObjects(2, handles, TRUE, INFINITE), WAIT_OBJECT_0);
  setter.join();
}

TEST(WaitForMultiple, BadArguments) {
  const Event a(false);
  const HANDLE handles[] = {a, nullptr};
  EXPECT_EQ(WaitForMultipleObjects(0, handles, FALSE, 0), WAIT_FAILED);
  EXPECT_EQ(WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS + 1, handles, FALSE, 0), WAIT_FAILED);
  EXPECT_EQ(WaitForMultipleObjects(2, handles, FALSE, 0), WAIT_FAILED);
  EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
}

}  // namespace
