#include "backend/cuda/completion_queue.h"

#include <sched.h>

#include <utility>

#include "backend/cuda/cuda_status.h"
#include "base/background_thread.h"

namespace anydml::cuda {
namespace {

constexpr int kNoCpu = -1;

}  // namespace

CompletionQueue::CompletionQueue(int device) : device_(device) {
  thread_ = StartBackgroundThread("anydml-cuda", [this] { Main(); });
}

CompletionQueue::~CompletionQueue() {
  {
    std::lock_guard lock(mutex_);
    closing_.store(true);
  }
  arrived_.notify_one();
  thread_.join();
  for (cudaEvent_t event : free_events_) cudaEventDestroy(event);
}

Status CompletionQueue::Push(cudaStream_t stream, std::function<void(const Status&)> done) {
  cudaEvent_t event = nullptr;
  ANYDML_RETURN_IF_ERROR(TakeEvent(&event));
  if (const Status status = Check(cudaEventRecord(event, stream), "recording an event"); !status.ok()) {
    GiveEvent(event);
    return status;
  }
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    items_.push_back({event, std::move(done)});
    item_count_.store(items_.size(), std::memory_order_release);
    wake = asleep_;
    if (wake) waker_cpu_ = sched_getcpu();
  }
  if (wake) arrived_.notify_one();
  return {};
}

void CompletionQueue::Main() {
  cudaSetDevice(device_);
  Item item;
  while (Pop(&item)) {
    item.done(Check(Wait(item.event), "executing a command list"));
    item.done = nullptr;
    GiveEvent(item.event);
  }
}

bool CompletionQueue::Pop(Item* item) {
  const auto ready = [this] {
    return item_count_.load(std::memory_order_acquire) != 0 || closing_.load(std::memory_order_relaxed);
  };
  const bool spun = arrival_spin_.Until(ready);
  std::unique_lock lock(mutex_);
  if (!spun && items_.empty() && !closing_) {
    const AdaptiveSpin::Sleep sleep;
    asleep_ = true;
    arrived_.wait(lock, [this] { return !items_.empty() || closing_; });
    asleep_ = false;
    arrival_spin_.Slept(sleep, waker_cpu_);
  }
  if (items_.empty()) return false;
  *item = std::move(items_.front());
  items_.pop_front();
  item_count_.store(items_.size(), std::memory_order_release);
  return true;
}

cudaError_t CompletionQueue::Wait(cudaEvent_t event) {
  cudaError_t result = cudaErrorNotReady;
  if (event_spin_.Until([&] { return (result = cudaEventQuery(event)) != cudaErrorNotReady; })) return result;
  const AdaptiveSpin::Sleep sleep;
  result = cudaEventSynchronize(event);
  event_spin_.Slept(sleep, kNoCpu);  // the device wakes it
  return result;
}

Status CompletionQueue::TakeEvent(cudaEvent_t* event) {
  {
    std::lock_guard lock(mutex_);
    if (!free_events_.empty()) {
      *event = free_events_.back();
      free_events_.pop_back();
      return {};
    }
  }
  return Check(cudaEventCreateWithFlags(event, cudaEventDisableTiming | cudaEventBlockingSync),
               "creating an event");
}

void CompletionQueue::GiveEvent(cudaEvent_t event) {
  std::lock_guard lock(mutex_);
  free_events_.push_back(event);
}

}  // namespace anydml::cuda
