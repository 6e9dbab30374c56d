// Leaving a processor that two threads share while others are idle.
#pragma once

#include <pthread.h>
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
      Move(pthread_self(), cpu);
    }
  }

  static constexpr int kPatience = 8;  // sleeps until it moves first

  // Moves a thread from `cpu`, if it is there: at once, since it may not be there for a moment.
  static void Move(pthread_t thread, int cpu) {
    cpu_set_t allowed;
    if (pthread_getaffinity_np(thread, sizeof(allowed), &allowed) != 0) return;  // it has too few bits
    cpu_set_t others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0) return;
    pthread_setaffinity_np(thread, sizeof(others), &others);
    pthread_setaffinity_np(thread, sizeof(allowed), &allowed);
  }

 private:
  static constexpr int kMostPatience = 4096;

  int shared_ = 0;
  int patience_ = kPatience;
};

}  // namespace anydml
