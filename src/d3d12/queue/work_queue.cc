#include "d3d12/queue/work_queue.h"

#include <utility>

#include "base/background_thread.h"
#include "base/default_environment.h"
#include "com/guard.h"
#include "d3d12/device/device.h"
#include "kernel/part_recorder.h"

namespace anydml::d3d12 {
WorkQueue::WorkQueue(Device* device, std::unique_ptr<Stream> stream)
    : device_(device), stream_(std::move(stream)) {
  thread_ = StartBackgroundThread("anydml-queue", [this] { Main(); });
}

WorkQueue::~WorkQueue() {
  {
    std::lock_guard lock(mutex_);
    closing_.store(true);
    if (blocked_on_) blocked_on_->Cancel();
  }
  work_arrived_.notify_one();
  thread_.join();
  stream_->Close();  // a thread that waits for a fence may still hold the stream
}

bool WorkQueue::RunHere(WorkItem* item) {
  if (item->wait || !stream_->synchronous() || (item->submission && !item->submission->brief())) return false;
  // A profiler is called on the queue's thread, because it may need locks that the caller holds.
  if (CurrentPartRecorder().record != nullptr) return false;
  {
    std::lock_guard lock(mutex_);
    if (!idle_ || here_ || closing_ || !items_.empty()) return false;
    here_ = true;
  }
  {
    const DefaultEnvironment environment;
    Run(std::move(*item));
    EndExecuted();
  }
  std::lock_guard lock(mutex_);
  here_ = false;
  if (!asleep_ || (items_.empty() && !closing_)) return true;
  waker_cpu_ = sched_getcpu();
  work_arrived_.notify_one();  // under the lock, since the queue may be destroyed right after it
  return true;
}

void WorkQueue::Push(WorkItem item) {
  if (RunHere(&item)) return;
  if (item.fence && !item.wait) item.fence->Expect(item.value, stream_);
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    item_count_.store(items_.size(), std::memory_order_release);
    wake = asleep_ && !here_;
    if (wake) waker_cpu_ = sched_getcpu();
  }
  if (wake) work_arrived_.notify_one();
}

void WorkQueue::Main() {
  WorkItem item;
  while (Pop(&item)) Run(std::move(item));
  EndExecuted();
  DropAll();
}

bool WorkQueue::Pop(WorkItem* item) {
  const auto ready = [this] {
    return item_count_.load(std::memory_order_acquire) != 0 || closing_.load(std::memory_order_relaxed);
  };
  if (!ready()) {
    EndExecuted();
    std::lock_guard lock(mutex_);
    idle_ = true;
  }
  const bool spun = spin_.Until(ready);
  std::unique_lock lock(mutex_);
  if (here_ || (!spun && items_.empty() && !closing_)) {
    const AdaptiveSpin::Sleep sleep;
    asleep_ = true;
    work_arrived_.wait(lock, [this] { return !here_ && (!items_.empty() || closing_); });
    asleep_ = false;
    spin_.Slept(sleep, waker_cpu_);
    const int waker_cpu = waker_cpu_;
    lock.unlock();  // moving to another processor may take a while
    move_away_.Woken(waker_cpu);
    lock.lock();
  }
  idle_ = false;
  if (items_.empty()) return false;  // only when closing; otherwise `ready` saw an item
  *item = std::move(items_.front());
  items_.pop_front();
  item_count_.store(items_.size(), std::memory_order_release);
  return true;
}

void WorkQueue::Run(WorkItem item) {
  const HRESULT hr = Guard([&] {
    if (item.submission) {
      Execute(std::move(item.submission));
    } else if (!item.wait) {
      Signal(std::move(item.fence), item.value);
    } else if (!WaitFor(*item.fence, item.value)) {
      // Removal ends waits for the dropped work, with a reason.
      device_->Remove(DXGI_ERROR_INVALID_CALL,
                      "ID3D12CommandQueue was released while it waits for a fence to reach ", item.value,
                      "; the work behind that is dropped");
      DropAll();
    }
    return S_OK;
  });
  if (FAILED(hr)) device_->Remove(hr, "an exception ended the work of the queue");
}

void WorkQueue::Execute(std::unique_ptr<Submission> submission) {
  if (device_->removed()) return;  // dropped: the submission's destructor ends its uses
  // It ends with the next signal, which usually follows at once, or before the queue waits. Also after a
  // failure, since a part of it may be in flight.
  executed_.push_back(std::move(submission));
  Check(executed_.back()->Execute(*stream_));
}

void WorkQueue::EndExecuted() {
  if (!executed_.empty()) Flush(nullptr, 0);
}

// When the stream reaches this point: ends the submissions before it and signals.
void WorkQueue::Flush(std::shared_ptr<FenceState> fence, uint64_t value) {
  struct Ending {
    std::vector<std::unique_ptr<Submission>> submissions;
    std::shared_ptr<FenceState> fence;
  };
  std::shared_ptr<Ending> ending;
  const HRESULT hr = Guard([&] {
    ending = std::make_shared<Ending>();
    ending->submissions.swap(executed_);
    ending->fence = std::move(fence);
    const Status status = stream_->Flush([this, ending, value](const Status& outcome) {
      ending->submissions.clear();
      Check(outcome);
      if (outcome.ok() && ending->fence) ending->fence->Signal(value);
    });
    Check(status);
    return ToHresult(status.code());
  });
  if (SUCCEEDED(hr)) return;
  device_->Remove(hr, "an exception ended the work of the queue");
  // Work may still be in flight; it is not once the stream is closed.
  if (ending) executed_.swap(ending->submissions);
}

void WorkQueue::Check(const Status& status) noexcept {
  if (status.ok()) return;
  device_->Remove(ToHresult(status.code()), "a command list failed on the queue: ", status.message());
}

void WorkQueue::Signal(std::shared_ptr<FenceState> fence, uint64_t value) {
  if (!device_->removed()) Flush(std::move(fence), value);
}

bool WorkQueue::WaitFor(FenceState& fence, uint64_t value) {
  EndExecuted();
  // Removal makes every fence reach every value, so it ends this wait, too.
  if (fence.SpinUntil(value, [this] { return closing_.load(std::memory_order_relaxed); })) {
    return fence.value() >= value;
  }
  const auto notification = std::make_shared<Notification>(1);
  {
    std::lock_guard lock(mutex_);
    if (closing_) return fence.value() >= value;
    blocked_on_ = notification;
  }
  fence.Notify(value, notification);
  fence.Sleep(notification.get());
  std::lock_guard lock(mutex_);
  blocked_on_.reset();
  return !closing_ || fence.value() >= value;
}

void WorkQueue::DropAll() {
  {
    std::lock_guard lock(mutex_);
    dropped_.swap(items_);
    item_count_.store(0, std::memory_order_release);
  }
  dropped_.clear();
}

}  // namespace anydml::d3d12
