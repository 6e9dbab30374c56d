// Threads that help the queues' threads with large kernels.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/adaptive_spin.h"
#include "base/move_away.h"
#include "kernel/kernel.h"
#include "kernel/short_work.h"

namespace anydml {

class ThreadPool {
 public:
  // A client of the pool. It calls Run from one thread at a time.
  class User final : public Executor, public ShortWork {
   public:
    explicit User(ThreadPool* pool) : pool_(pool) {}

    // The pool shares the tasks of one user at a time; a second user meanwhile runs its tasks alone.
    void Run(uint32_t count, Task task, void* context) override {
      pool_->Run(this, count, task, context);
      Ended();
    }

    bool Pays() override;
    void Ended() override;

    // Spins until `ready`, which becomes true after a call of Run; returns false if patience ends first.
    // Meanwhile the calling thread takes tasks of earlier calls: if there are no more processors than
    // threads, a thread that only spun would keep a worker from its processor.
    bool HelpUntil(const std::function<bool()>& ready, AdaptiveSpin* spin);

   private:
    friend ThreadPool;
    ThreadPool* const pool_;
    std::atomic<uint32_t> helpers_{0};                // threads in HelpUntil
    std::atomic<AdaptiveSpin::Clock::rep> ended_{0};  // when its last short work ended
  };

  // `threads` includes the caller of Run: threads - 1 are started (fewer if the system refuses).
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();

 private:
  using Task = Executor::Task;

  void Run(const User* user, uint32_t count, Task task, void* context);
  void Wake(uint32_t workers);
  bool Help(const User* user, const std::function<bool()>& ready);
  void Main();
  void Sleep(AdaptiveSpin* spin, KeepAway* keep_away);
  bool RunNext(bool from_front);
  void RunTask(uint64_t index);

  std::mutex shared_by_;  // held by the caller whose tasks are shared
  // The tasks that are shared now; written only when no task is left to take.
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::atomic<const User*> user_{nullptr};
  // 32 bits: number of the call; 16: the first task not yet taken; 16: the end of the tasks. The caller takes
  // tasks from the front, workers from the back: neighbouring tasks often share memory, and the caller's
  // tasks are at the front in the next call, too. It is one word so that no thread takes a task of one call
  // for that of the next. Workers spin on it, so it has a cache line of its own.
  alignas(64) std::atomic<uint64_t> taken_{0};
  alignas(64) std::atomic<uint32_t> unfinished_{0};
  // Workers that sleep, or that will look for work once more before they sleep.
  alignas(64) std::atomic<uint32_t> sleeping_{0};
  std::atomic<uint32_t> wanted_{0};  // counts calls that want workers; they sleep on it
  std::atomic<int> waker_cpu_{KeepAway::kNowhere};
  std::atomic<bool> closing_{false};
  alignas(64) AdaptiveSpin spin_;  // of the callers
  std::vector<std::thread> workers_;
};

}  // namespace anydml
