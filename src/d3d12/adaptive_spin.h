// Waiting a moment before going to sleep. Waking a sleeping thread costs tens of
// microseconds, so a wait that is usually shorter than that should not sleep; a
// wait that is usually longer should not spin at all.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace anydml::d3d12 {

class AdaptiveSpin {
 public:
  // True when `ready` became true within the present patience. Yields between
  // looks: on a machine with few cores the thread that we wait for may need ours.
  template <typename Ready>
  bool Until(Ready&& ready) {
    if (ready()) return true;
    const int64_t patience = patience_ns_.load(std::memory_order_relaxed);
    const auto start = Clock::now();
    do {
      for (int i = 0; i < 8; ++i) {
        if (ready()) {
          SetPatience(patience * 2);
          return true;
        }
        std::this_thread::yield();
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

}  // namespace anydml::d3d12
