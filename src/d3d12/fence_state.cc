#include "d3d12/fence_state.h"

#include <algorithm>
#include <iterator>

namespace anydml::d3d12 {

void FenceState::Signal(uint64_t value) { Set(value, false); }

void FenceState::Remove() { Set(UINT64_MAX, true); }

void FenceState::Set(uint64_t value, bool removed) {
  std::vector<Waiter> reached;
  {
    std::lock_guard lock(mutex_);
    if (removed_) return;
    removed_ = removed;
    value_.store(value, std::memory_order_release);
    if (waiters_.empty()) return;
    const auto first = std::partition(waiters_.begin(), waiters_.end(),
                                      [value](const Waiter& waiter) { return waiter.value > value; });
    reached.assign(std::make_move_iterator(first), std::make_move_iterator(waiters_.end()));
    waiters_.erase(first, waiters_.end());
  }
  for (const Waiter& waiter : reached) waiter.notification->Fire();
}

void FenceState::Notify(uint64_t value, std::shared_ptr<Notification> notification) {
  {
    std::lock_guard lock(mutex_);
    if (value_.load(std::memory_order_relaxed) < value) {
      waiters_.push_back({value, std::move(notification)});
      return;
    }
  }
  notification->Fire();
}

void FenceState::Expect(uint64_t value, const std::shared_ptr<Stream>& stream) {
  std::lock_guard lock(expected_mutex_);
  expected_ = value;
  expected_from_ = stream;
}

// For the application's threads: they may be put to the work that they wait for.
bool FenceState::SpinUntil(uint64_t target) {
  std::shared_ptr<Stream> stream;
  {
    std::lock_guard lock(expected_mutex_);
    if (expected_ == target) stream = expected_from_.lock();
  }
  const auto reached = [this, target] { return value() >= target; };
  return stream ? stream->SpinUntil(reached, &spin_) : spin_.Until(reached);
}

void FenceState::Wait(uint64_t value) {
  if (this->value() >= value || SpinUntil(value)) return;
  const auto notification = std::make_shared<Notification>(1);
  Notify(value, notification);
  Sleep(notification.get());
}

}  // namespace anydml::d3d12
