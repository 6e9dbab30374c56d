// Executors that know whether their other threads are at hand.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace anydml {

class ShortWork {
 public:
  // What a WorkEstimate of short work is at most: some ten microseconds.
  static constexpr uint64_t kMostBytes = uint64_t{2} << 20;

  // Whether it pays to share such work: waking a thread takes about as long. It does where others spin, or
  // where the last such work has ended a moment ago, so that who is woken will spin for the next.
  virtual bool Pays() = 0;
  virtual void Ended() = 0;  // to be told of such work that was not shared

  // Does such work with body() if it does not pay to share it; whether it has.
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
