// Shares a run between threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "kernel/kernel.h"

namespace anydml {

// Calls body(i) once for every i below `count`, on the executor's threads if there is one.
template <typename Body>
void ParallelFor(Executor* executor, uint32_t count, Body&& body) {
  if (executor == nullptr || count <= 1) {
    for (uint32_t i = 0; i < count; ++i) body(i);
    return;
  }
  using Function = std::remove_reference_t<Body>;
  executor->Run(
      count, [](void* context, uint32_t i) { (*static_cast<Function*>(context))(i); },
      const_cast<std::remove_const_t<Function>*>(&body));
}

// The begin of part `part` of `parts` nearly equal, contiguous parts of [0, total); part `parts` begins at
// the end.
inline uint64_t PartBegin(uint64_t total, uint32_t part, uint32_t parts) {
  return total / parts * part + total % parts * part / parts;
}

// Parts of a run, which workers take one after the other:
//   SharedParts shared(parts, workers);
//   ParallelFor(executor, workers, [&](uint32_t worker) {
//     for (uint64_t part; shared.Take(worker, &part);) ...
//   });
// Each worker begins with a share of its own: contiguous parts, the same ones in every run, which may still
// be in its cache. A worker that has finished its share takes parts of the others'. So a thread that starts
// late, or is slowed down by other programs, delays the rest by one part and not by its share.
class SharedParts {
 public:
  SharedParts(uint64_t parts, uint32_t workers) : count_(std::clamp(workers, 1u, kMostShares)) {
    for (uint32_t s = 0; s < count_; ++s) {
      shares_[s] = {PartBegin(parts, s, count_), PartBegin(parts, s + 1, count_)};
    }
  }

  // False if none is left.
  bool Take(uint32_t worker, uint64_t* part) {
    for (Share* share = &shares_[worker % count_]; share != nullptr; share = Longest()) {
      if (share->Left() == 0) continue;
      *part = std::atomic_ref(share->next).fetch_add(1, std::memory_order_relaxed);
      if (*part < share->end) return true;
    }
    return false;
  }

 private:
  static constexpr uint32_t kMostShares = 64;

  struct alignas(64) Share {
    uint64_t next;  // next part; several threads may increment it at once, possibly beyond the end
    uint64_t end;

    uint64_t Left() { return end - std::min(end, std::atomic_ref(next).load(std::memory_order_relaxed)); }
  };

  // The share with the most parts left; null if all are empty.
  Share* Longest() {
    Share* longest = nullptr;
    uint64_t most = 0;
    for (uint32_t s = 0; s < count_; ++s) {
      const uint64_t left = shares_[s].Left();
      if (left > most) {
        most = left;
        longest = &shares_[s];
      }
    }
    return longest;
  }

  const uint32_t count_;
  Share shares_[kMostShares];
};

}  // namespace anydml
