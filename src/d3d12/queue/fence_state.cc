#include "d3d12/queue/fence_state.h"

#include <iterator>

namespace anydml::d3d12 {

void FenceState::Signal(uint64_t value) noexcept { Set(value, false); }

void FenceState::Remove() noexcept { Set(UINT64_MAX, true); }

void FenceState::Set(uint64_t value, bool removed) noexcept {
  std::list<Waiter> reached;
  {
    std::lock_guard lock(mutex_);
    if (removed_) return;
    removed_ = removed;
    value_.store(value, std::memory_order_release);
    for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
      const auto next = std::next(waiter);
      if (waiter->value <= value) reached.splice(reached.end(), waiters_, waiter);
      waiter = next;
    }
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

// For the application's threads, which may do some of the work that they wait for.
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
