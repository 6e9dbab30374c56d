// Leaving a processor that two threads share while others are idle.
#pragma once

#include <sched.h>

#include <algorithm>

namespace anydml {

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
      From(cpu);
    }
  }

  static constexpr int kPatience = 8;  // sleeps until it moves first

 private:
  static constexpr int kMostPatience = 4096;

  // The kernel moves a thread at once when it may no longer be where it is.
  static void From(int cpu) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;  // more processors than a cpu_set_t has
    cpu_set_t others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0) return;
    sched_setaffinity(0, sizeof(others), &others);
    sched_setaffinity(0, sizeof(allowed), &allowed);
  }

  int shared_ = 0;
  int patience_ = kPatience;
};

}  // namespace anydml
