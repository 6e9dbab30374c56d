#include "backend/cpu/thread_pool.h"

#include <system_error>

#include "base/background_thread.h"

namespace anydml {
namespace {

constexpr uint64_t kMaxTasks = 0xFFFF;

uint64_t CountOf(uint64_t taken) { return (taken >> 16) & kMaxTasks; }
uint64_t NextOf(uint64_t taken) { return taken & kMaxTasks; }

}  // namespace

ThreadPool::ThreadPool(uint32_t threads) {
  workers_.reserve(threads);
  try {
    for (uint32_t i = 1; i < threads; ++i) {
      workers_.push_back(StartBackgroundThread("anydml-worker", [this] { Main(); }));
    }
  } catch (const std::system_error&) {
    // Those that could be started do.
  }
}

ThreadPool::~ThreadPool() {
  closing_.store(true);
  calls_.fetch_add(1);
  calls_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(uint32_t count, Task task, void* context) {
  std::unique_lock lock(shared_by_, std::try_to_lock);
  if (!lock.owns_lock() || workers_.empty() || count > kMaxTasks) {
    for (uint32_t i = 0; i < count; ++i) task(context, i);
    return;
  }
  task_ = task;
  context_ = context;
  unfinished_.store(count, std::memory_order_relaxed);
  const uint64_t call = calls_.load(std::memory_order_relaxed) + 1;
  taken_.store(call << 32 | uint64_t{count} << 16, std::memory_order_release);
  calls_.store(static_cast<uint32_t>(call), std::memory_order_release);
  calls_.notify_all();
  while (RunNext()) {
  }
  // What others have taken they are at; they need about as long as the caller did.
  while (unfinished_.load(std::memory_order_acquire) != 0) {
    if (spin_.Until([this] { return unfinished_.load(std::memory_order_acquire) == 0; })) break;
    std::this_thread::yield();
  }
}

// False when no task was left.
bool ThreadPool::RunNext() {
  uint64_t taken = taken_.load(std::memory_order_acquire);
  do {
    if (NextOf(taken) >= CountOf(taken)) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + 1, std::memory_order_acq_rel));
  task_(context_, static_cast<uint32_t>(NextOf(taken)));
  unfinished_.fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

void ThreadPool::Main() {
  AdaptiveSpin spin;
  while (true) {
    const uint32_t seen = calls_.load(std::memory_order_acquire);
    while (RunNext()) {
    }
    const auto called = [&] { return calls_.load(std::memory_order_acquire) != seen; };
    if (!spin.Until(called)) {
      const auto start = AdaptiveSpin::Clock::now();
      calls_.wait(seen);
      spin.Slept(AdaptiveSpin::Clock::now() - start);
    }
    if (closing_.load()) return;
  }
}

}  // namespace anydml
