// Waits for points of a stream in order and calls what waits behind them. A point is a number that
// the device writes to host memory, which costs nothing to look at (asking for an event takes a lock
// that launching also takes), and an event, to sleep for and to learn of failures.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/cuda/cuda_memory.h"
#include "base/adaptive_spin.h"
#include "base/status.h"

namespace anydml::cuda {

class CompletionQueue {
 public:
  CompletionQueue(int device, MemoryPool& host_memory);
  ~CompletionQueue();  // when everything is complete

  // Calls `done`, which throws nothing, on a thread of its own when `stream` has come to this point.
  // On failure it is not called.
  Status Push(cudaStream_t stream, std::function<void(const Status&)> done);

 private:
  struct Item {
    uint64_t number;
    cudaEvent_t event;
    std::function<void(const Status&)> done;
  };

  void Main();
  bool Pop(std::list<Item>* item);  // false: closing, and nothing is left
  cudaError_t Wait(const Item& item);
  Status TakeEvent(cudaEvent_t* event);
  void GiveEvent(cudaEvent_t event) noexcept;

  const int device_;
  std::shared_ptr<Memory> reached_memory_;
  std::atomic_ref<uint64_t> Reached() const;  // the number that the device wrote last
  uint64_t pushed_ = 0;                       // the last number
  size_t event_count_ = 0;                    // free or on their way
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::list<Item> items_;
  std::vector<cudaEvent_t> free_events_;
  std::atomic<size_t> item_count_{0};  // of items_, for looking without the lock
  bool asleep_ = false;
  int waker_cpu_ = 0;  // when asleep
  std::atomic<bool> closing_{false};
  AdaptiveSpin arrival_spin_;
  // Only while the device works, and to be woken by it takes as long as many kernels.
  AdaptiveSpin event_spin_{std::chrono::milliseconds(1)};

  std::thread thread_;  // last: it starts when everything else is there
};

}  // namespace anydml::cuda
