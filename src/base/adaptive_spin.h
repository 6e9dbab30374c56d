// Spinning for a moment before sleeping. Waking a sleeping thread costs tens of microseconds, so a wait that
// is usually shorter should spin, and a wait that is usually longer should not spin at all.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace anydml {

// Tells the processor that the thread spins, which leaves more of the core to the thread that shares it.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` does nothing on most processors
#endif
}

class AdaptiveSpin {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::nanoseconds kMost{50'000};
  explicit AdaptiveSpin(std::chrono::nanoseconds most = kMost) : most_ns_(most.count()) {}

  // True if `ready` became true within the present patience. It does not yield: if other programs want the
  // processor, a yielding thread comes back after their time slices (milliseconds), while a sleeping one is
  // woken at once.
  template <typename Ready>
  bool Until(Ready&& ready) {
    return Until(ready, [] { return false; });
  }

  // While spinning, calls `work`, which returns true if it did something useful; that time does not count.
  template <typename Ready, typename Work>
  bool Until(Ready&& ready, Work&& work) {
    if (ready()) return true;
    const int64_t patience = patience_ns_.load(std::memory_order_relaxed);
    auto start = Clock::now();
    do {
      if (ready()) {
        SetPatience(patience * 2);
        return true;
      }
      if (work()) {
        start = Clock::now();
      } else {
        SpinPause();
      }
    } while (std::chrono::nanoseconds(Clock::now() - start).count() < patience);
    SetPatience(patience / 2);
    return false;
  }

  // A sleep after a fruitless spin; create it where the sleep begins.
  struct Sleep {
    const Clock::time_point began = Clock::now();
    const int cpu = sched_getcpu();
  };

  // Call it at once after a sleep, with the waking thread's processor. A short sleep shows that more patience
  // would have paid, except if both threads shared a processor (the others being busy): then it was the spin
  // that kept the other thread from its work.
  void Slept(const Sleep& sleep, int waker_cpu) {
    if (sleep.cpu == waker_cpu) return;
    if (std::chrono::nanoseconds(Clock::now() - sleep.began).count() < most_ns_) SetPatience(most_ns_);
  }

 private:
  static constexpr int64_t kLeastNs = 1'000;

  void SetPatience(int64_t ns) {
    patience_ns_.store(std::clamp(ns, kLeastNs, most_ns_), std::memory_order_relaxed);
  }

  const int64_t most_ns_;
  std::atomic<int64_t> patience_ns_{most_ns_};
};

}  // namespace anydml
