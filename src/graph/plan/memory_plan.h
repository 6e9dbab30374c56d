// Plans the places in one piece of memory of things with limited lifetimes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace anydml {

struct Lifetime {
  uint64_t bytes = 0;
  uint64_t alignment = 1;  // a power of two
  uint32_t first = 0;      // the first step that needs it
  uint32_t last = 0;       // and the last
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // one per lifetime
  uint64_t bytes = 0;             // saturates
  uint64_t most_live = 0;         // the largest sum of simultaneous lifetimes: a lower bound for `bytes`
};

// Things whose lifetimes share a step share no byte.
MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes);

}  // namespace anydml
