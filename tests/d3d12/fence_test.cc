#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

using FenceTest = D3D12Test;

TEST_F(FenceTest, CpuSignal) {
  const auto fence = CreateFence(device(), 5);
  EXPECT_EQ(fence->GetCompletedValue(), 5u);
  EXPECT_EQ(fence->Signal(9), S_OK);
  EXPECT_EQ(fence->GetCompletedValue(), 9u);
  EXPECT_EQ(fence->Signal(2), S_OK);  // a decrease is allowed
  EXPECT_EQ(fence->GetCompletedValue(), 2u);
}

TEST_F(FenceTest, Flags) {
  Ptr<ID3D12Fence1> fence;
  EXPECT_EQ(device()->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)), S_OK);
  EXPECT_EQ(fence->GetCreationFlags(), D3D12_FENCE_FLAG_NONE);
  EXPECT_EQ(device()->CreateFence(0, D3D12_FENCE_FLAG_SHARED, IID_PPV_ARGS(&fence)), E_NOTIMPL);
  EXPECT_EQ(device()->CreateFence(0, static_cast<D3D12_FENCE_FLAGS>(0x100), IID_PPV_ARGS(&fence)),
            E_INVALIDARG);
}

TEST_F(FenceTest, ReachedAlready) {
  const auto fence = CreateFence(device(), 5);
  EXPECT_EQ(fence->SetEventOnCompletion(5, nullptr), S_OK);
  Event event;
  EXPECT_EQ(fence->SetEventOnCompletion(4, event.handle()), S_OK);
  EXPECT_EQ(event.Take(), 1u);
}

TEST_F(FenceTest, EventIsSetOnceWhenReached) {
  const auto fence = CreateFence(device());
  Event event;
  EXPECT_EQ(fence->SetEventOnCompletion(2, event.handle()), S_OK);
  fence->Signal(1);
  EXPECT_EQ(event.Take(), 0u);
  fence->Signal(7);
  EXPECT_EQ(event.Take(), 1u);
  fence->Signal(8);
  EXPECT_EQ(event.Take(), 0u);
}

TEST_F(FenceTest, EventSeesAValueThatWasOnlyThereForAMoment) {
  const auto fence = CreateFence(device());
  Event event;
  EXPECT_EQ(fence->SetEventOnCompletion(2, event.handle()), S_OK);
  fence->Signal(3);
  fence->Signal(0);
  EXPECT_EQ(event.Take(), 1u);
}

TEST_F(FenceTest, HighBitsOfAHandleAreFlags) {
  const auto fence = CreateFence(device());
  Event event;
  const auto handle = reinterpret_cast<uintptr_t>(event.handle()) | uintptr_t{0x5} << 32;
  EXPECT_EQ(fence->SetEventOnCompletion(1, reinterpret_cast<HANDLE>(handle)), S_OK);
  fence->Signal(1);
  EXPECT_EQ(event.Take(), 1u);
}

TEST_F(FenceTest, EventMayBeClosedBeforeItIsReached) {
  const auto fence = CreateFence(device());
  Event observer;
  const int copy = dup(observer.fd());
  EXPECT_EQ(fence->SetEventOnCompletion(1, reinterpret_cast<HANDLE>(static_cast<uintptr_t>(copy))), S_OK);
  close(copy);
  fence->Signal(1);
  EXPECT_EQ(observer.Take(), 1u);
}

TEST_F(FenceTest, AFullEventBlocksNobody) {
  const int fd = eventfd(0, EFD_CLOEXEC);  // writes block when the counter is full
  const uint64_t full = UINT64_MAX - 1;
  ASSERT_EQ(write(fd, &full, sizeof(full)), static_cast<ssize_t>(sizeof(full)));
  const auto fence = CreateFence(device());
  EXPECT_EQ(fence->SetEventOnCompletion(1, reinterpret_cast<HANDLE>(static_cast<uintptr_t>(fd))), S_OK);
  EXPECT_EQ(fence->Signal(1), S_OK);
  uint64_t count = 0;
  EXPECT_EQ(read(fd, &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
  EXPECT_EQ(count, full);
  close(fd);
}

TEST_F(FenceTest, WhatIsNoEventIsRefused) {
  const auto fence = CreateFence(device());
  EXPECT_EQ(fence->SetEventOnCompletion(0, reinterpret_cast<HANDLE>(uintptr_t{0x7FFFFFF0})), E_HANDLE);
  EXPECT_TRUE(LastErrorHas("hEvent"));
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  EXPECT_EQ(fence->SetEventOnCompletion(0, reinterpret_cast<HANDLE>(static_cast<uintptr_t>(pipes[1]))),
            E_HANDLE);
  pollfd poll_fd = {pipes[0], POLLIN, 0};
  EXPECT_EQ(poll(&poll_fd, 1, 0), 0);  // nothing was written to it
  close(pipes[0]);
  close(pipes[1]);
}

constexpr bool UnderAddressSanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#elif defined(__has_feature)
  return __has_feature(address_sanitizer);
#else
  return false;
#endif
}

TEST_F(FenceTest, NoDescriptorLeftForAnEvent) {
  if (UnderAddressSanitizer()) GTEST_SKIP() << "UBSan, which comes along, looks at objects through a pipe";
  const auto fence = CreateFence(device());
  Event event;
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit few = {std::min<rlim_t>(usual.rlim_cur, 1024), usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> taken;
  for (int fd = dup(event.fd()); fd >= 0; fd = dup(event.fd())) taken.push_back(fd);
  ASSERT_EQ(errno, EMFILE);
  const HRESULT one = fence->SetEventOnCompletion(1, event.handle());
  const std::string sentence = AnyDmlGetLastErrorMessage();
  ID3D12Fence* fences[] = {fence.get()};
  const UINT64 values[] = {1};
  const HRESULT several = device()->SetEventOnMultipleFenceCompletion(
      fences, values, 1, D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL, event.handle());
  for (const int fd : taken) close(fd);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(one, E_OUTOFMEMORY);
  EXPECT_EQ(sentence,
            "ID3D12Fence::SetEventOnCompletion: the event hEvent cannot be duplicated: Too many open files");
  EXPECT_EQ(several, E_OUTOFMEMORY);
  EXPECT_TRUE(LastErrorHas("SetEventOnMultipleFenceCompletion: the event hEvent cannot be duplicated"));
  fence->Signal(1);
  EXPECT_EQ(event.Take(), 0u);
}

TEST_F(FenceTest, FenceMayGoBeforeItIsReached) {
  Event event;
  CreateFence(device())->SetEventOnCompletion(1, event.handle());
  EXPECT_EQ(event.Take(), 0u);
}

TEST_F(FenceTest, BlocksAcrossThreads) {
  const auto there = CreateFence(device()), back = CreateFence(device());
  std::thread other([&] {
    for (uint64_t i = 1; i <= 2000; ++i) {
      ASSERT_EQ(there->SetEventOnCompletion(i, nullptr), S_OK);
      ASSERT_EQ(back->Signal(i), S_OK);
    }
  });
  for (uint64_t i = 1; i <= 2000; ++i) {
    ASSERT_EQ(there->Signal(i), S_OK);
    ASSERT_EQ(back->SetEventOnCompletion(i, nullptr), S_OK);
    // Let the other thread fall asleep.
    if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  other.join();
}

TEST_F(FenceTest, ManyWaitersOfOneFence) {
  const auto fence = CreateFence(device());
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= 8; ++i) {
    threads.emplace_back([&, i] {
      fence->SetEventOnCompletion(i, nullptr);
      EXPECT_GE(fence->GetCompletedValue(), i);
      ++done;
    });
  }
  for (uint64_t i = 1; i <= 8; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fence->Signal(i);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, 8);
}

TEST_F(FenceTest, AllOfSeveral) {
  const auto a = CreateFence(device()), b = CreateFence(device());
  ID3D12Fence* fences[] = {a.get(), b.get()};
  const UINT64 values[] = {1, 2};
  Event event;
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(fences, values, 2, D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL,
                                                        event.handle()),
            S_OK);
  a->Signal(1);
  EXPECT_EQ(event.Take(), 0u);
  b->Signal(2);
  EXPECT_EQ(event.Take(), 1u);
}

TEST_F(FenceTest, AnyOfSeveral) {
  const auto a = CreateFence(device()), b = CreateFence(device());
  ID3D12Fence* fences[] = {a.get(), b.get()};
  const UINT64 values[] = {1, 2};
  Event event;
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(fences, values, 2, D3D12_MULTIPLE_FENCE_WAIT_FLAG_ANY,
                                                        event.handle()),
            S_OK);
  b->Signal(2);
  EXPECT_EQ(event.Take(), 1u);
  a->Signal(1);
  EXPECT_EQ(event.Take(), 0u);
}

TEST_F(FenceTest, SeveralBlocking) {
  const auto a = CreateFence(device()), b = CreateFence(device());
  ID3D12Fence* fences[] = {a.get(), b.get()};
  const UINT64 values[] = {1, 1};
  std::thread signaller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    a->Signal(1);
    b->Signal(1);
  });
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(fences, values, 2, D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL,
                                                        nullptr),
            S_OK);
  EXPECT_EQ(a->GetCompletedValue() + b->GetCompletedValue(), 2u);
  signaller.join();
}

TEST_F(FenceTest, SeveralMisuse) {
  const auto a = CreateFence(device());
  ID3D12Fence* fences[] = {a.get(), nullptr};
  const UINT64 values[] = {1, 1};
  const auto all = D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL;
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(fences, values, 2, all, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(nullptr, values, 1, all, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(fences, nullptr, 1, all, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(fences, values, 0, all, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->SetEventOnMultipleFenceCompletion(
                fences, values, 1, static_cast<D3D12_MULTIPLE_FENCE_WAIT_FLAGS>(4), nullptr),
            E_INVALIDARG);
}

}  // namespace
}  // namespace anydml::testing
