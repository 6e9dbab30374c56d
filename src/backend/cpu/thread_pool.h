// Threads that help the queues' threads with large kernels.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/adaptive_spin.h"
#include "ops/kernel.h"

namespace anydml {

class ThreadPool final : public Executor {
 public:
  // `threads` counts the caller of Run: threads - 1 are started (fewer if the system refuses).
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();

  // One caller's tasks at a time are shared; a second caller meanwhile runs its own alone.
  void Run(uint32_t count, Task task, void* context) override;

 private:
  void Main();
  bool RunNext();

  std::mutex shared_by_;  // held by the caller whose tasks are shared
  // The tasks that are shared now; written only while none is left to be taken.
  Task task_ = nullptr;
  void* context_ = nullptr;
  // 32 bits: number of the call; 16: count of its tasks; 16: how many have been taken.
  // One word, so that nobody takes a task of one call for that of the next.
  alignas(64) std::atomic<uint64_t> taken_{0};
  alignas(64) std::atomic<uint32_t> unfinished_{0};
  alignas(64) std::atomic<uint32_t> calls_{0};  // what idle workers sleep on
  std::atomic<bool> closing_{false};
  AdaptiveSpin spin_;
  std::vector<std::thread> workers_;
};

}  // namespace anydml
