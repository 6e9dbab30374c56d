// Waits for points of a stream in order and calls the function that waits for each. A point is a number,
// which the device writes to host memory, and an event. Reading the number costs nothing, whereas querying an
// event takes a lock that launches also take; the event is for sleeping and for detecting failures.
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
  ~CompletionQueue();  // returns when everything is complete

  // Calls `done`, which must not throw, on the queue's own thread when `stream` reaches this point. Not
  // called if Push fails.
  Status Push(cudaStream_t stream, std::function<void(const Status&)> done);

 private:
  struct Item {
    uint64_t number;
    cudaEvent_t event;
    std::function<void(const Status&)> done;
  };

  void Main();
  bool Pop(std::list<Item>* item);  // false: closing, and the queue is empty
  cudaError_t Wait(const Item& item);
  Status TakeEvent(cudaEvent_t* event);
  void GiveEvent(cudaEvent_t event) noexcept;

  const int device_;
  std::shared_ptr<Memory> reached_memory_;
  std::atomic_ref<uint64_t> Reached() const;  // the number that the device wrote last
  uint64_t pushed_ = 0;                       // the last number pushed
  size_t event_count_ = 0;                    // free or in use
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::list<Item> items_;
  std::vector<cudaEvent_t> free_events_;
  std::atomic<size_t> item_count_{0};  // size of items_, readable without the lock
  bool asleep_ = false;
  int waker_cpu_ = 0;  // valid while the thread sleeps
  std::atomic<bool> closing_{false};
  AdaptiveSpin arrival_spin_;
  // More patience: it spins only while the device works, and a wake-up by the device takes as long as many
  // kernels.
  AdaptiveSpin event_spin_{std::chrono::milliseconds(1)};

  std::thread thread_;  // last member: it starts when all others are constructed
};

}  // namespace anydml::cuda
