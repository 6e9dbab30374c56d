// Waiting a moment before going to sleep. Waking a sleeping thread costs tens of
// microseconds, so a wait that is usually shorter than that should not sleep; a
// wait that is usually longer should not spin at all.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace anydml {

class AdaptiveSpin {
 public:
  // True when `ready` became true within the present patience. It does not yield:
  // where other programs want the processor, a thread that yields comes back after
  // their time slices (milliseconds), but one that sleeps is woken at once.
  template <typename Ready>
  bool Until(Ready&& ready) {
    if (ready()) return true;
    const int64_t patience = patience_ns_.load(std::memory_order_relaxed);
    const auto start = Clock::now();
    do {
      if (ready()) {
        SetPatience(patience * 2);
        return true;
      }
    } while (std::chrono::nanoseconds(Clock::now() - start).count() < patience);
    SetPatience(patience / 2);
    return false;
  }

  // To be told how long the sleep after a fruitless spin lasted: a short one shows
  // that more patience would have paid.
  void Slept(std::chrono::nanoseconds duration) {
    if (duration.count() < kMostNs) SetPatience(kMostNs);
  }

  using Clock = std::chrono::steady_clock;

 private:
  static constexpr int64_t kMostNs = 50'000;
  static constexpr int64_t kLeastNs = 1'000;

  void SetPatience(int64_t ns) {
    patience_ns_.store(std::clamp(ns, kLeastNs, kMostNs), std::memory_order_relaxed);
  }

  std::atomic<int64_t> patience_ns_{kMostNs};
};

}  // namespace anydml
