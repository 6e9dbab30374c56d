// The CPU backend under a kernel that refuses it system calls. Longer than most files: the tests share the
// filters and the child processes.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/cpu/cpu_info.h"
#include "backend/cpu/thread_pool.h"
#include "base/move_away.h"
#include "kernel/short_work.h"
#include "ops/common/parallel.h"

namespace anydml {
namespace {

TEST(CpuInfo, Intel) {
  const CpuIdentity cpu = ParseCpuInfo(
      "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Platinum "
      "8481C\n\n"
      "processor\t: 1\nvendor_id\t: GenuineIntel\nmodel name\t: another\n");
  EXPECT_EQ(cpu.description, "Intel(R) Xeon(R) Platinum 8481C");
  EXPECT_EQ(cpu.vendor_id, 0x8086u);
  EXPECT_EQ(cpu.device_id, 143u);
}

TEST(CpuInfo, Amd) {
  const CpuIdentity cpu = ParseCpuInfo("vendor_id : AuthenticAMD\nmodel : 17\nmodel name : AMD EPYC 9654\n");
  EXPECT_EQ(cpu.description, "AMD EPYC 9654");
  EXPECT_EQ(cpu.vendor_id, 0x1022u);
}

TEST(CpuInfo, Arm) {
  const CpuIdentity cpu = ParseCpuInfo(
      "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: "
      "0x0\n"
      "CPU part\t: 0xd4f\nCPU revision\t: 0\n");
  EXPECT_EQ(cpu.description, "Arm Neoverse-V2");
  EXPECT_EQ(cpu.vendor_id, 0x13B5u);
  EXPECT_EQ(cpu.device_id, 0xd4fu);
}

TEST(CpuInfo, UnknownArmAndNothing) {
  EXPECT_NE(ParseCpuInfo("CPU implementer : 0x99\nCPU part : 0x123\n").description.find("0x123"),
            std::string::npos);
  const CpuIdentity nothing = ParseCpuInfo("");
  EXPECT_FALSE(nothing.description.empty());
  EXPECT_NE(nothing.vendor_id, 0x1414u);
}

TEST(CpuInfo, Quota) {
  EXPECT_EQ(ParseCpuQuota("max 100000\n"), 0u);
  EXPECT_EQ(ParseCpuQuota("200000 100000\n"), 2u);
  EXPECT_EQ(ParseCpuQuota("150000 100000\n"), 2u);
  EXPECT_EQ(ParseCpuQuota("50000 100000\n"), 1u);
  EXPECT_EQ(ParseCpuQuota(""), 0u);
  EXPECT_EQ(ParseCpuQuota("1 0"), 0u);
  EXPECT_GE(CpuThreads(), 1u);
}

// The thread runs elsewhere and may return. Other code may move it back at any time.
TEST(MoveAway, FromAProcessorThatIsShared) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int moved = 0;
  for (int i = 0; i < 20; ++i) {
    MoveAway move_away;
    const int cpu = sched_getcpu();
    for (int sleep = 0; sleep < MoveAway::kPatience; ++sleep) move_away.Woken(cpu);
    if (sched_getcpu() != cpu) ++moved;
  }
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  if (CPU_COUNT(&before) > 1) {
    EXPECT_GT(moved, 0);
  }
}

TEST(KeepAway, IsElsewhere) {
  cpu_set_t before, during, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  if (CPU_COUNT(&before) == 1) GTEST_SKIP() << "there is one processor";
  KeepAway away;
  for (int i = 0; i < 20; ++i) {
    const int cpu = sched_getcpu();
    away.From(cpu);
    EXPECT_NE(sched_getcpu(), cpu);
    ASSERT_EQ(sched_getaffinity(0, sizeof(during), &during), 0);
    EXPECT_EQ(CPU_COUNT(&during), CPU_COUNT(&before) - 1);  // only the last one is avoided
  }
  away.From(KeepAway::kNowhere);
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// An application may set the affinity of all threads of its process.
TEST(KeepAway, WithinWhatTheApplicationAllows) {
  cpu_set_t before, one, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int cpu = sched_getcpu();
  KeepAway away;
  away.From(cpu);
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  for (const int from : {CPU_SETSIZE - 1, cpu, KeepAway::kNowhere, CPU_SETSIZE + 1}) {
    away.From(from);
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&one, &after)) << from;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(KeepAway, WhatTheApplicationTakesBackIsForgotten) {
  cpu_set_t before, one, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int cpu = sched_getcpu();
  KeepAway away;
  away.From(cpu);
  away.From(KeepAway::kNowhere);
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  away.From(cpu);  // it is allowed nowhere else
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  away.From(CPU_SETSIZE - 1);
  away.From(KeepAway::kNowhere);
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

// Sandboxes make calls fail, or end the process if a call names another thread: both are tried here.
TEST(KeepAway, WhereTheSystemRefuses) {
  bool refused = false;
  std::thread([&] {  // a filter is permanent
    sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sched_setaffinity, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const sock_fprog filter = {std::size(instructions), instructions};
    refused = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
    if (!refused) return;
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    KeepAway away;
    ThreadPool pool(2);
    ThreadPool::User user(&pool);
    for (int i = 0; i < 3; ++i) {
      away.From(sched_getcpu());
      away.From(KeepAway::kNowhere);
      std::atomic<int> tasks{0};
      ParallelFor(&user, 4, [&](uint32_t) { tasks.fetch_add(1); });
      EXPECT_EQ(tasks.load(), 4);
      while (user.Pays()) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the worker sleeps
    }
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  })
      .join();
  if (!refused) GTEST_SKIP() << "the system takes no filters";
}

TEST(MoveAway, NotWhereThereIsNoOther) {
  MoveAway move_away;
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const int cpu = sched_getcpu();
  for (int sleep = 0; sleep < 100; ++sleep) move_away.Woken(cpu);
  EXPECT_EQ(sched_getcpu(), cpu);
  ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
}

// If all workers sleep, the caller of short work starts alone; work that arrives a moment later is shared.
TEST(ThreadPool, ShortWork) {
  ThreadPool pool(2);
  ThreadPool::User user(&pool);
  while (user.Pays()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  bool done = false;
  EXPECT_TRUE(ShortWork::DoAlone(&user, [&] { done = true; }));
  EXPECT_TRUE(done);
  bool pays = false;
  for (int i = 0; i < 1000 && !pays; ++i) {  // the moment is short if other programs run
    user.Ended();
    pays = user.Pays();
  }
  EXPECT_TRUE(pays);
  EXPECT_FALSE(ShortWork::DoAlone(nullptr, [] {}));
}

// Every task runs once, over many consecutive calls from several concurrent callers.
TEST(ThreadPool, EveryTaskOnce) {
  ThreadPool pool(4);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&pool] {
      ThreadPool::User user(&pool);
      for (uint32_t call = 0; call < 2000; ++call) {
        const uint32_t count = call % 9;
        std::array<std::atomic<int>, 9> runs{};
        ParallelFor(&user, count, [&](uint32_t i) { runs[i].fetch_add(1, std::memory_order_relaxed); });
        for (uint32_t i = 0; i < runs.size(); ++i) ASSERT_EQ(runs[i], i < count ? 1 : 0);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// If a task waits for another task, the other one runs concurrently.
TEST(ThreadPool, AtTheSameTime) {
  ThreadPool pool(2);
  ThreadPool::User user(&pool);
  std::atomic<int> arrived{0};
  ParallelFor(&user, 2, [&](uint32_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, SleepsAndWakes) {
  ThreadPool pool(3);
  ThreadPool::User user(&pool);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> sum{0};
    ParallelFor(&user, 100, [&](uint32_t task) { sum += static_cast<int>(task); });
    EXPECT_EQ(sum, 4950);
  }
}

// A worker that is delayed in a task delays only the call of that task. In the end everything has been done
// once.
TEST(ThreadPool, AStalledWorkerDelaysItsCallOnly) {
  ThreadPool pool(7);
  ThreadPool::User slow(&pool), other(&pool);
  std::atomic<bool> stalled{false}, resume{false};
  std::atomic<bool> returned{false};
  std::array<std::atomic<int>, 7> runs{};
  std::thread caller([&] {
    const std::thread::id self = std::this_thread::get_id();
    ParallelFor(&slow, 7, [&](uint32_t i) {
      if (std::this_thread::get_id() == self) {
        while (!stalled) std::this_thread::yield();  // a worker has to take a task, too
      } else if (!stalled.exchange(true)) {
        while (!resume) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ++runs[i];
    });
    returned = true;
  });
  while (!stalled) std::this_thread::yield();
  for (uint32_t call = 0; call < 1000; ++call) {
    std::atomic<uint32_t> sum{0};
    ParallelFor(&other, 20, [&](uint32_t task) { sum += task; });
    ASSERT_EQ(sum, 190u);
  }
  EXPECT_FALSE(returned);
  resume = true;
  caller.join();
  for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
  // Afterwards the pool works as before.
  std::atomic<int> sum{0};
  ParallelFor(&other, 100, [&](uint32_t task) { sum += static_cast<int>(task); });
  EXPECT_EQ(sum, 4950);
}

// The caller runs the first task, even if others arrive earlier: its data is in the caller's cache.
TEST(ThreadPool, TheFirstTaskIsTheCallers) {
  ThreadPool pool(4);
  ThreadPool::User user(&pool);
  const std::thread::id self = std::this_thread::get_id();
  for (uint32_t call = 0; call < 1000; ++call) {
    std::array<std::thread::id, 5> ran_on;
    ParallelFor(&user, 5, [&](uint32_t task) { ran_on[task] = std::this_thread::get_id(); });
    ASSERT_EQ(ran_on[0], self);
  }
}

// Every part runs once, for all numbers of parts and workers.
TEST(SharedParts, EveryPartOnce) {
  ThreadPool pool(4);
  ThreadPool::User user(&pool);
  for (uint32_t call = 0; call < 2000; ++call) {
    const uint32_t workers = 1 + call % 7;
    const uint64_t parts = call * 13 % 40;
    std::array<std::atomic<int>, 40> runs{};
    SharedParts shared(parts, workers);
    ParallelFor(&user, workers, [&](uint32_t worker) {
      for (uint64_t part; shared.Take(worker, &part);) {
        ASSERT_LT(part, parts);
        runs[part].fetch_add(1, std::memory_order_relaxed);
      }
    });
    for (uint64_t part = 0; part < runs.size(); ++part) ASSERT_EQ(runs[part], part < parts ? 1 : 0);
  }
}

// When alone, a worker gets its own share in order, then the rest.
TEST(SharedParts, SharesAreNeighbours) {
  SharedParts shared(10, 3);
  std::vector<uint64_t> taken;
  for (uint64_t part; shared.Take(1, &part);) taken.push_back(part);
  EXPECT_EQ(taken, (std::vector<uint64_t>{3, 4, 5, 6, 0, 7, 1, 8, 2, 9}));
  uint64_t part;
  for (uint32_t worker = 0; worker < 3; ++worker) EXPECT_FALSE(shared.Take(worker, &part));
  SharedParts many(1000, 300);
  std::vector<bool> seen(1000);
  for (uint32_t worker = 299; many.Take(worker, &part); worker = (worker + 7) % 300) {
    EXPECT_FALSE(seen[part]);
    seen[part] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 1000);
}

// Other workers do the parts that a stalled thread has not begun.
TEST(SharedParts, AStalledThreadKeepsOnePart) {
  ThreadPool pool(2);
  ThreadPool::User user(&pool);
  constexpr uint64_t kParts = 100;
  std::atomic<uint64_t> done{0};
  std::atomic<bool> stalled{false};
  SharedParts shared(kParts, 2);
  ParallelFor(&user, 2, [&](uint32_t worker) {
    for (uint64_t part; shared.Take(worker, &part);) {
      if (worker == 1) {
        stalled = true;
        while (done < kParts - 1) std::this_thread::yield();
      }
      while (!stalled) std::this_thread::yield();
      ++done;
    }
  });
  EXPECT_EQ(done, kParts);
}

// Threads that wait for an item behind some calls help with the tasks of these calls, in the default
// floating-point environment, and with none of the later calls.
TEST(ThreadPool, HelpersTakeTasks) {
  ThreadPool pool(2);
  ThreadPool::User user(&pool), other(&pool);
  std::atomic<uint32_t> reached{0};
  std::atomic<bool> closing{false};
  std::atomic<int> helped{0}, astray{0};
  thread_local uint32_t waits_for = 0;  // the item that a helper waits for
  std::vector<std::thread> helpers;
  for (int helper = 0; helper < 2; ++helper) {
    helpers.emplace_back([&] {
      std::fesetround(FE_UPWARD);
      AdaptiveSpin spin;
      while (!closing) {
        waits_for = reached + 1;
        user.HelpUntil([&] { return reached >= waits_for || closing; }, &spin);
        EXPECT_EQ(std::fegetround(), FE_UPWARD);
      }
    });
  }
  std::thread stranger([&] {
    while (!closing) {
      ParallelFor(&other, 3, [&](uint32_t) { astray += waits_for != 0; });
    }
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (uint32_t call = 0; call < 2000 || (helped == 0 && std::chrono::steady_clock::now() < deadline);
       ++call) {
    std::array<std::atomic<int>, 3> runs{};
    ParallelFor(&user, 3, [&](uint32_t i) {
      runs[i].fetch_add(1, std::memory_order_relaxed);
      if (waits_for == 0) return;
      ++helped;
      // Not with calls behind that item.
      if (std::fegetround() != FE_TONEAREST || call >= waits_for) ++astray;
    });
    for (const std::atomic<int>& run : runs) ASSERT_EQ(run, 1);
    reached = call + 1;
  }
  closing = true;
  stranger.join();
  for (std::thread& helper : helpers) helper.join();
  EXPECT_GT(helped, 0);
  EXPECT_EQ(astray, 0);
}

TEST(CpuBackend, Memory) {
  Backend& cpu = *Backends().front();
  EXPECT_EQ(cpu.adapter().id, "cpu");
  EXPECT_NE(cpu.adapter().luid, 0u);
  std::shared_ptr<Memory> memory;
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{65536}, uint64_t{5} << 20}) {
    ASSERT_TRUE(cpu.Allocate(MemoryKind::kDefault, bytes, &memory).ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->device()) % 65536, 0u);
    EXPECT_EQ(memory->size(), bytes);
    for (const uint64_t at : {uint64_t{0}, bytes / 2, bytes - 1}) EXPECT_EQ(memory->host()[at], std::byte{0});
    std::memset(memory->host(), 1, bytes);
  }
  EXPECT_EQ(cpu.Allocate(MemoryKind::kDefault, UINT64_MAX, &memory).code(), Code::kOutOfMemory);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cpu.Allocate(MemoryKind::kDefault, 0, &memory).code(), Code::kInvalidArgument);
}

TEST(CpuBackend, Stream) {
  const auto stream = Backends().front()->CreateStream();
  std::byte data[11] = {};
  ASSERT_TRUE(stream->Fill32(data, 0x04030201, 10).ok());  // a partial word at the end
  EXPECT_EQ(data[9], std::byte{2});
  EXPECT_EQ(data[10], std::byte{0});
  ASSERT_TRUE(stream->Copy(data, data + 1, 9).ok());  // ranges overlap
  EXPECT_EQ(data[0], std::byte{2});
  EXPECT_EQ(data[8], std::byte{2});
  uint64_t first = 0, second = 0;
  ASSERT_TRUE(stream->WriteTimestamp(&first).ok());
  ASSERT_TRUE(stream->WriteTimestamp(&second).ok());
  EXPECT_LE(first, second);
  bool done = false;
  ASSERT_TRUE(stream->Flush([&done](const Status& status) { done = status.ok(); }).ok());
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace anydml
