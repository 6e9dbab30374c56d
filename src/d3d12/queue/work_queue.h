// The thread of a command queue and its work, in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/adaptive_spin.h"
#include "base/move_away.h"
#include "d3d12/queue/fence_state.h"
#include "d3d12/queue/submission.h"

namespace anydml::d3d12 {

struct WorkItem {
  // Exactly one of: a submission to execute, a fence to signal, a fence to wait for.
  std::unique_ptr<Submission> submission;
  std::shared_ptr<FenceState> fence;
  uint64_t value = 0;
  bool wait = false;
};

class WorkQueue {
 public:
  // The device outlives the queue: the command queue that owns it holds a reference.
  WorkQueue(Device* device, std::unique_ptr<Stream> stream);

  // Does everything up to the first unsatisfied wait; if work remains, drops it and removes the device.
  ~WorkQueue();

  // The calling thread runs an item that a synchronous stream does in no time, if no other work is before it:
  // handing it over to the queue's thread and waiting for it would take longer.
  void Push(WorkItem item);

  void* native_stream() const { return stream_->native(); }

 private:
  bool RunHere(WorkItem* item);  // false: the item belongs to the queue's thread
  void Main();
  bool Pop(WorkItem* item);  // false: the queue is closing and empty
  void Run(WorkItem item);
  void Execute(std::unique_ptr<Submission> submission);
  void EndExecuted();
  void Flush(std::shared_ptr<FenceState> fence, uint64_t value);
  void Check(const Status& status) noexcept;  // a failure removes the device
  void Signal(std::shared_ptr<FenceState> fence, uint64_t value);
  bool WaitFor(FenceState& fence, uint64_t value);  // false: the queue closes meanwhile
  void DropAll();

  Device* const device_;
  const std::shared_ptr<Stream> stream_;  // shared with fences, which refer to it weakly

  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::deque<WorkItem> items_;
  std::atomic<size_t> item_count_{0};  // size of items_, readable without the lock
  std::deque<WorkItem> dropped_;       // filled by DropAll, which must not allocate
  bool asleep_ = false;
  bool idle_ = false;  // the thread has finished everything, and does nothing until it gets the lock again
  bool here_ = false;  // a caller of Push runs its item: nobody else uses the stream and `executed_`
  int waker_cpu_ = 0;
  std::atomic<bool> closing_{false};
  std::vector<std::unique_ptr<Submission>> executed_;  // and not yet flushed
  std::shared_ptr<Notification> blocked_on_;           // the object on which WaitFor sleeps
  AdaptiveSpin spin_;
  MoveAway move_away_;

  std::thread thread_;  // last member: it starts when all others are constructed
};

}  // namespace anydml::d3d12
