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
  // One whose tasks are shared. It calls Run from one thread at a time.
  class User final : public Executor, public ShortWork {
   public:
    explicit User(ThreadPool* pool) : pool_(pool) {}

    // One user's tasks at a time are shared; a second one meanwhile runs its own alone.
    void Run(uint32_t count, Task task, void* context) override {
      pool_->Run(this, count, task, context);
      Ended();
    }

    bool Pays() override;
    void Ended() override;

    // Spins until `ready`, which becomes true behind a call of Run; false when patience ends before.
    // Meanwhile the calling thread takes tasks of calls before that. Where there are no more
    // processors than threads, a thread that only spun would keep a worker from its processor.
    bool HelpUntil(const std::function<bool()>& ready, AdaptiveSpin* spin);

   private:
    friend ThreadPool;
    ThreadPool* const pool_;
    std::atomic<uint32_t> helpers_{0};                // threads in HelpUntil
    std::atomic<AdaptiveSpin::Clock::rep> ended_{0};  // when its last work did
  };

  // `threads` counts the caller of Run: threads - 1 are started (fewer if the system refuses).
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
  // The tasks that are shared now; written only while none is left to be taken.
  Task task_ = nullptr;
  void* context_ = nullptr;
  std::atomic<const User*> user_{nullptr};
  // 32 bits: number of the call; 16: its first task that is not taken; 16: behind the last one. The caller
  // takes them from the front, others from the back: tasks that are neighbours often share memory, and the
  // caller's are those at the front of the next call, too.
  // One word, so that nobody takes a task of one call for that of the next. Workers spin for it: nothing that
  // is written for other reasons is near it.
  alignas(64) std::atomic<uint64_t> taken_{0};
  alignas(64) std::atomic<uint32_t> unfinished_{0};
  // Workers that sleep, or will look once more before they do.
  alignas(64) std::atomic<uint32_t> sleeping_{0};
  std::atomic<uint32_t> wanted_{0};  // counts calls for them; they sleep on it
  std::atomic<int> waker_cpu_{KeepAway::kNowhere};
  std::atomic<bool> closing_{false};
  alignas(64) AdaptiveSpin spin_;  // of callers
  std::vector<std::thread> workers_;
};

}  // namespace anydml
