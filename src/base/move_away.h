// Leaving a processor that two threads share while others are idle.
#pragma once

#include <sched.h>

#include <algorithm>

namespace anydml {

// Keeps the calling thread off a processor; never another thread, which sandboxes forbid. Nothing happens
// where it may be nowhere else, or where the system refuses.
class KeepAway {
 public:
  static constexpr int kNowhere = -1;

  // From now on, and only from this one: the thread leaves it at once if it is there, and is put elsewhere
  // when it is woken.
  void From(int cpu) {
    cpu_set_t now;
    if (cpu == from_ || sched_getaffinity(0, sizeof(now), &now) != 0) return;  // it has too few bits
    if (!CPU_EQUAL(&now, &set_)) allowed_ = set_ = now;                        // somebody else wants it so
    from_ = cpu;
    cpu_set_t others = allowed_;
    CPU_CLR(cpu, &others);  // does nothing to what is no processor's number
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof(others), &others) == 0) set_ = others;
  }

 private:
  int from_ = kNowhere;
  cpu_set_t allowed_ = {};
  cpu_set_t set_ = {};  // as it was left: allowed_, or that without from_
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
      keep_away_.From(cpu);
      keep_away_.From(KeepAway::kNowhere);
    }
  }

  static constexpr int kPatience = 8;  // sleeps until it moves first

 private:
  static constexpr int kMostPatience = 4096;

  KeepAway keep_away_;
  int shared_ = 0;
  int patience_ = kPatience;
};

}  // namespace anydml
