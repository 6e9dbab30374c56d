// The thread of a command queue and the work before it, in order.
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
#include "d3d12/fence_state.h"
#include "d3d12/submission.h"

namespace anydml::d3d12 {

struct WorkItem {
  // One of three: a submission to execute; or a fence to signal, or to wait for.
  std::unique_ptr<Submission> submission;
  std::shared_ptr<FenceState> fence;
  uint64_t value = 0;
  bool wait = false;
};

class WorkQueue {
 public:
  // The device outlives the queue: the command queue that owns it holds a reference.
  WorkQueue(Device* device, std::unique_ptr<Stream> stream);

  // Does what can still be done: everything up to the first wait that is not
  // satisfied; then the rest is dropped and the device removed.
  ~WorkQueue();

  // What a synchronous stream does in no time is done by the calling thread, if nothing is before it: handing
  // it over, and hearing of it, would take longer.
  void Push(WorkItem item);

  void* native_stream() const { return stream_->native(); }

 private:
  bool RunHere(WorkItem* item);  // false: it is the thread's
  void Main();
  bool Pop(WorkItem* item);  // false: the queue closes and nothing is left
  void Run(WorkItem item);
  void Execute(std::unique_ptr<Submission> submission);
  void EndExecuted();
  void Flush(std::shared_ptr<FenceState> fence, uint64_t value);
  void Check(const Status& status) noexcept;  // a failure removes the device
  void Signal(std::shared_ptr<FenceState> fence, uint64_t value);
  bool WaitFor(FenceState& fence, uint64_t value);  // false: the queue closes meanwhile
  void DropAll();

  Device* const device_;
  const std::shared_ptr<Stream> stream_;  // fences look at it

  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::deque<WorkItem> items_;
  std::atomic<size_t> item_count_{0};  // of items_, for looking without the lock
  bool asleep_ = false;
  bool idle_ = false;  // the thread has done everything, and does nothing before it has the lock again
  bool here_ = false;  // a caller of Push runs its item: nobody else touches the stream and what is executed
  int waker_cpu_ = 0;
  std::atomic<bool> closing_{false};
  std::vector<std::unique_ptr<Submission>> executed_;  // and not yet flushed
  std::shared_ptr<Notification> blocked_on_;           // what WaitFor sleeps on
  AdaptiveSpin spin_;
  MoveAway move_away_;

  std::thread thread_;  // last: it starts when everything else is there
};

}  // namespace anydml::d3d12
