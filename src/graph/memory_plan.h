// Where in one piece of memory things lie that are needed for a while only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace anydml {

struct Lifetime {
  uint64_t bytes = 0;
  uint64_t alignment = 1;  // a power of two
  uint32_t first = 0;      // step in which it is needed first,
  uint32_t last = 0;       // and last
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // one per lifetime
  uint64_t bytes = 0;             // saturates
  uint64_t most_live = 0;         // no plan can have less
};

// Things whose lifetimes share a step share no byte.
MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes);

}  // namespace anydml
