// Executors that know whether their other threads are awake.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace anydml {

class ShortWork {
 public:
  // The largest WorkEstimate of short work: some ten microseconds.
  static constexpr uint64_t kMostBytes = uint64_t{2} << 20;

  // Whether sharing short work pays, since waking a thread takes about as long as the work. It pays while
  // other threads spin, and if the last short work ended a moment ago, because a woken thread will then spin
  // for the next.
  virtual bool Pays() = 0;
  virtual void Ended() = 0;  // to be called after short work that was not shared

  // Runs body() if sharing does not pay; returns whether it has.
  template <typename Body>
  static bool DoAlone(Executor* executor, Body&& body) {
    auto* const knows = dynamic_cast<ShortWork*>(executor);
    if (knows == nullptr || knows->Pays()) return false;
    body();
    knows->Ended();
    return true;
  }

 protected:
  ~ShortWork() = default;
};

}  // namespace anydml
