// Leaving a processor that two threads share while others are idle.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <mutex>

namespace anydml {

// While one lives, a thread is not on `cpu`: it is moved at once if it is there, and put elsewhere when it is
// woken. Nothing happens where it may be nowhere else.
class KeptAway {
 public:
  KeptAway(pthread_t thread, int cpu) : one_at_a_time_(mutex), thread_(thread) {
    cpu_set_t others;
    if (pthread_getaffinity_np(thread, sizeof(allowed_), &allowed_) != 0) return;  // it has too few bits
    others = allowed_;
    CPU_CLR(cpu, &others);
    kept_ = CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread, sizeof(others), &others) == 0;
  }
  ~KeptAway() {
    if (kept_) pthread_setaffinity_np(thread_, sizeof(allowed_), &allowed_);
  }
  KeptAway(const KeptAway&) = delete;
  KeptAway& operator=(const KeptAway&) = delete;

 private:
  static inline std::mutex mutex;
  const std::lock_guard<std::mutex> one_at_a_time_;  // else what another has set would be restored
  const pthread_t thread_;
  cpu_set_t allowed_;
  bool kept_ = false;
};

// For a thread that another one wakes again and again. The system tends to keep such two on one
// processor, where neither can spin for the other, even after all others have become idle. So it goes to
// another one after some such sleeps; rarely at last, where others are busy and it is brought back.
class MoveAway {
 public:
  // To be told, by the thread itself, of a sleep that a thread on `cpu` ended.
  void Woken(int cpu) {
    if (sched_getcpu() != cpu) {
      shared_ = 0;
    } else if (++shared_ >= patience_) {
      shared_ = 0;
      patience_ = std::min(2 * patience_, kMostPatience);
      const KeptAway moved(pthread_self(), cpu);
    }
  }

  static constexpr int kPatience = 8;  // sleeps until it moves first

 private:
  static constexpr int kMostPatience = 4096;

  int shared_ = 0;
  int patience_ = kPatience;
};

}  // namespace anydml
