#include "backend/cuda/completion_queue.h"

#include <cuda.h>
#include <sched.h>

#include <utility>

#include "backend/cuda/cuda_status.h"
#include "base/background_thread.h"

namespace anydml::cuda {
namespace {

constexpr int kNoCpu = -1;

// cuStreamWriteValue64 of the driver, which is not linked because some machines lack it. Null if the driver
// does not have the function.
using WriteValue = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
WriteValue FindWriteValue() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &function, 12000, cudaEnableDefault, &result);
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess
             ? reinterpret_cast<WriteValue>(function)
             : nullptr;
}

}  // namespace

CompletionQueue::CompletionQueue(int device, MemoryPool& host_memory) : device_(device) {
  // Without this memory, every wait uses the event.
  if (!host_memory.Allocate(sizeof(uint64_t), &reached_memory_).ok()) reached_memory_.reset();
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

std::atomic_ref<uint64_t> CompletionQueue::Reached() const {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(reached_memory_->host()));
}

Status CompletionQueue::Push(cudaStream_t stream, std::function<void(const Status&)> done) {
  static const WriteValue write_value = FindWriteValue();
  std::list<Item> item;  // allocated before the event is recorded: afterwards nothing may fail
  item.push_back({pushed_ + 1, nullptr, std::move(done)});
  cudaEvent_t& event = item.back().event;
  ANYDML_RETURN_IF_ERROR(TakeEvent(&event));
  ++pushed_;
  if (write_value != nullptr && reached_memory_) {
    write_value(stream, reinterpret_cast<CUdeviceptr>(reached_memory_->device()), pushed_, 0);
  }
  if (const Status status = Check(cudaEventRecord(event, stream), "recording an event"); !status.ok()) {
    GiveEvent(event);
    return status;
  }
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    items_.splice(items_.end(), item);
    item_count_.store(items_.size(), std::memory_order_release);
    wake = asleep_;
    if (wake) waker_cpu_ = sched_getcpu();
  }
  if (wake) arrived_.notify_one();
  return {};
}

void CompletionQueue::Main() {
  cudaSetDevice(device_);
  for (std::list<Item> item; Pop(&item); item.clear()) {
    item.back().done(Check(Wait(item.back()), "executing a command list"));
    GiveEvent(item.back().event);
  }
}

bool CompletionQueue::Pop(std::list<Item>* item) {
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
  item->splice(item->end(), items_, items_.begin());
  item_count_.store(items_.size(), std::memory_order_release);
  return true;
}

cudaError_t CompletionQueue::Wait(const Item& item) {
  if (reached_memory_ &&
      event_spin_.Until([&] { return Reached().load(std::memory_order_acquire) >= item.number; })) {
    return cudaSuccess;
  }
  const AdaptiveSpin::Sleep sleep;
  const cudaError_t result = cudaEventSynchronize(item.event);
  event_spin_.Slept(sleep, kNoCpu);  // the device wakes the thread
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
    free_events_.reserve(event_count_ + 1);  // so that returning an event cannot fail
  }
  ANYDML_RETURN_IF_ERROR(Check(
      cudaEventCreateWithFlags(event, cudaEventDisableTiming | cudaEventBlockingSync), "creating an event"));
  ++event_count_;
  return {};
}

void CompletionQueue::GiveEvent(cudaEvent_t event) noexcept {
  std::lock_guard lock(mutex_);
  free_events_.push_back(event);
}

}  // namespace anydml::cuda
