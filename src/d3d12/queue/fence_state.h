// The part of a fence that queues hold: its value and its waiters.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "base/adaptive_spin.h"
#include "d3d12/queue/notification.h"

namespace anydml::d3d12 {

class FenceState {
 public:
  explicit FenceState(uint64_t initial) : value_(initial) {}

  uint64_t value() const { return value_.load(std::memory_order_acquire); }

  // The value may decrease, as in Direct3D; waiters see every value that was set. No effect after Remove.
  void Signal(uint64_t value) noexcept;

  // For device removal: the value becomes UINT64_MAX for good, and all waits end.
  void Remove() noexcept;

  // Fires `notification` when `value` is reached, or at once if it already is.
  void Notify(uint64_t value, std::shared_ptr<Notification> notification);

  // Announces a signal of `value` that follows the work of `stream`.
  void Expect(uint64_t value, const std::shared_ptr<Stream>& stream);

  // Blocks until `value` is reached.
  void Wait(uint64_t value);

  // Spins for a moment until `value` is reached or `give_up` is true.
  template <typename GiveUp>
  bool SpinUntil(uint64_t target, GiveUp&& give_up) {
    return spin_.Until([&] { return value() >= target || give_up(); });
  }
  // Sleeps until `notification` is delivered.
  void Sleep(Notification* notification) {
    const AdaptiveSpin::Sleep sleep;
    spin_.Slept(sleep, notification->Block());
  }

 private:
  struct Waiter {
    uint64_t value;
    std::shared_ptr<Notification> notification;
  };

  void Set(uint64_t value, bool removed) noexcept;
  bool SpinUntil(uint64_t target);

  std::atomic<uint64_t> value_;
  AdaptiveSpin spin_;
  std::mutex mutex_;
  bool removed_ = false;
  std::list<Waiter> waiters_;
  // The last announced signal, on a cache line that the queue's threads do not touch.
  alignas(64) std::mutex expected_mutex_;
  uint64_t expected_ = 0;
  std::weak_ptr<Stream> expected_from_;
};

}  // namespace anydml::d3d12
