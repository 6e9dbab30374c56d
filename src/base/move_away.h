// Leaving a processor that two threads share although others are idle.
#pragma once

#include <sched.h>

#include <algorithm>

namespace anydml {

// Keeps the calling thread off a processor; never another thread, because sandboxes forbid that. Does nothing
// if the thread may run nowhere else, or if the system refuses.
class KeepAway {
 public:
  static constexpr int kNowhere = -1;

  // Replaces the processor to avoid: the thread leaves it at once if it is there, and is placed elsewhere
  // when it is woken.
  void From(int cpu) {
    cpu_set_t now;
    if (cpu == from_ || sched_getaffinity(0, sizeof(now), &now) != 0)
      return;  // the machine has more
               // processors than cpu_set_t
    if (!CPU_EQUAL(&now, &set_))
      allowed_ = set_ = now;  // the application has changed
                              // it
    from_ = cpu;
    cpu_set_t others = allowed_;
    CPU_CLR(cpu, &others);  // ignores numbers that are no processor's
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof(others), &others) == 0) set_ = others;
  }

 private:
  int from_ = kNowhere;
  cpu_set_t allowed_ = {};
  cpu_set_t set_ = {};  // the affinity that was set last: allowed_, or allowed_ without from_
};

// For a thread that another one wakes again and again. The system tends to keep two such threads on one
// processor, where neither can spin for the other, even after all other processors have become idle. So the
// thread moves to another processor after several such sleeps; if it keeps being brought back because others
// are busy, it moves ever more rarely.
class MoveAway {
 public:
  // Call it from the thread itself, after a sleep that a thread on `cpu` ended.
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

  static constexpr int kPatience = 8;  // sleeps before the first move

 private:
  static constexpr int kMostPatience = 4096;

  KeepAway keep_away_;
  int shared_ = 0;
  int patience_ = kPatience;
};

}  // namespace anydml
