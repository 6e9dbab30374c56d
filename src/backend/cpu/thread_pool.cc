#include "backend/cpu/thread_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <exception>

#include "base/background_thread.h"
#include "base/default_environment.h"

namespace anydml {
namespace {

constexpr uint64_t kMaxTasks = 0xFFFF;

uint64_t CallOf(uint64_t taken) { return taken >> 32; }
uint64_t FrontOf(uint64_t taken) { return (taken >> 16) & kMaxTasks; }
uint64_t BackOf(uint64_t taken) { return taken & kMaxTasks; }
bool AnyLeft(uint64_t taken) { return FrontOf(taken) < BackOf(taken); }

// wait() and notify on std::atomic wake one thread or all; a futex wakes a given number.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
              std::atomic<uint32_t>::is_always_lock_free);
void FutexWait(std::atomic<uint32_t>* word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void FutexWake(std::atomic<uint32_t>* word, int most) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

}  // namespace

ThreadPool::ThreadPool(uint32_t threads) {
  workers_.reserve(threads);
  try {
    for (uint32_t i = 1; i < threads; ++i) {
      workers_.push_back(StartBackgroundThread("anydml-worker", [this] { Main(); }));
    }
  } catch (const std::exception&) {  // of the system, or of memory
    // Go on with the threads that could be started.
  }
}

ThreadPool::~ThreadPool() {
  closing_.store(true);
  Wake(INT_MAX);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(const User* user, uint32_t count, Task task, void* context) {
  std::unique_lock lock(shared_by_, std::try_to_lock);
  if (!lock.owns_lock() || workers_.empty() || count < 2 || count > kMaxTasks) {
    for (uint32_t i = 0; i < count; ++i) task(context, i);
    return;
  }
  task_ = task;
  context_ = context;
  user_.store(user, std::memory_order_relaxed);
  unfinished_.store(count, std::memory_order_relaxed);
  const uint64_t call = CallOf(taken_.load(std::memory_order_relaxed)) + 1;
  // Task 0 is reserved for the caller, however late the caller gets to it.
  taken_.store(call << 32 | uint64_t{1} << 16 | count);
  // Sequentially consistent, as in Sleep: either a worker is seen here as asleep, or it sees the call there.
  const uint32_t sleeping = sleeping_.load();
  if (sleeping != 0) {
    const uint64_t others = workers_.size() - sleeping + user->helpers_.load(std::memory_order_relaxed);
    if (others + 1 < count) Wake(count - 1 - static_cast<uint32_t>(others));
  }
  RunTask(0);
  while (RunNext(/*from_front=*/true)) {
  }
  // All tasks are taken. The remaining ones run on other threads and take about as long as the caller's did.
  while (unfinished_.load(std::memory_order_acquire) != 0) {
    if (spin_.Until([this] { return unfinished_.load(std::memory_order_acquire) == 0; })) break;
    std::this_thread::yield();
  }
}

// False if no task was left.
bool ThreadPool::RunNext(bool from_front) {
  uint64_t taken = taken_.load(std::memory_order_acquire);
  do {
    if (!AnyLeft(taken)) return false;
  } while (!taken_.compare_exchange_weak(taken, from_front ? taken + (uint64_t{1} << 16) : taken - 1,
                                         std::memory_order_acq_rel));
  RunTask(from_front ? FrontOf(taken) : BackOf(taken) - 1);
  return true;
}

void ThreadPool::RunTask(uint64_t index) {
  task_(context_, static_cast<uint32_t>(index));
  unfinished_.fetch_sub(1, std::memory_order_acq_rel);
}

// Takes one task of `user`, if there is one. The call is read before `ready` is tested and must be unchanged
// afterwards: a call that begins after `ready` became true does not concern the helper.
bool ThreadPool::Help(const User* user, const std::function<bool()>& ready) {
  uint64_t taken = taken_.load(std::memory_order_acquire);
  if (!AnyLeft(taken) || user_.load(std::memory_order_relaxed) != user || ready()) return false;
  if (!taken_.compare_exchange_strong(taken, taken - 1, std::memory_order_acq_rel)) return false;
  const DefaultEnvironment environment;  // the helper is a thread of the application
  RunTask(BackOf(taken) - 1);
  return true;
}

bool ThreadPool::User::HelpUntil(const std::function<bool()>& ready, AdaptiveSpin* spin) {
  helpers_.fetch_add(1, std::memory_order_relaxed);
  const bool became_ready = spin->Until(ready, [&] { return pool_->Help(this, ready); });
  helpers_.fetch_sub(1, std::memory_order_relaxed);
  return became_ready;
}

bool ThreadPool::User::Pays() {
  if (pool_->sleeping_.load(std::memory_order_relaxed) < pool_->workers_.size()) return true;
  constexpr AdaptiveSpin::Clock::duration kMoment = 2 * AdaptiveSpin::kMost;
  const AdaptiveSpin::Clock::duration ended(ended_.load(std::memory_order_relaxed));
  return AdaptiveSpin::Clock::now().time_since_epoch() - ended < kMoment;
}

void ThreadPool::User::Ended() {
  ended_.store(AdaptiveSpin::Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

// Wakes up to that many sleeping workers.
void ThreadPool::Wake(uint32_t workers) {
  const int cpu = sched_getcpu();
  const bool elsewhere = waker_cpu_.exchange(cpu, std::memory_order_relaxed) != cpu;
  wanted_.fetch_add(1);
  FutexWake(&wanted_, static_cast<int>(std::min<uint32_t>(workers, INT_MAX)));
  // Workers avoid the last waker's processor and may have moved to this one; they leave it if they get to
  // run.
  if (elsewhere) std::this_thread::yield();
}

void ThreadPool::Main() {
  AdaptiveSpin spin;
  KeepAway keep_away;
  const auto wanted = [&] { return AnyLeft(taken_.load(std::memory_order_acquire)) || closing_.load(); };
  while (!closing_.load()) {
    while (RunNext(/*from_front=*/false)) {
    }
    if (!spin.Until(wanted)) Sleep(&spin, &keep_away);
  }
}

void ThreadPool::Sleep(AdaptiveSpin* spin, KeepAway* keep_away) {
  sleeping_.fetch_add(1);
  const uint32_t seen = wanted_.load();  // read before the last look for work, so that a later call is
                                         // counted
  if (AnyLeft(taken_.load()) || closing_.load()) {
    sleeping_.fetch_sub(1);
    return;
  }
  const AdaptiveSpin::Sleep sleep;
  FutexWait(&wanted_, seen);
  sleeping_.fetch_sub(1);
  const int waker_cpu = waker_cpu_.load(std::memory_order_relaxed);
  spin->Slept(sleep, waker_cpu);
  // The caller is busy on that processor. When all processors are busy, the system may still queue woken
  // threads behind it, and leaves them there for milliseconds even if another processor becomes idle at once
  // (such as the one on which the application spun before it slept).
  keep_away->From(waker_cpu);
}

}  // namespace anydml
