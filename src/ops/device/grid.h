// How a kernel of a GPU is launched: so many blocks (work groups) of so many threads.
#pragma once

#include <cstdint>

namespace anydml {

// What CUDA allows in the first dimension of a grid. A backend whose limit is smaller spreads the blocks over
// several dimensions.
inline constexpr uint64_t kMaxBlocks = (uint64_t{1} << 31) - 1;

struct Grid {
  uint64_t blocks = 0;
  uint32_t threads = 0;       // of a block
  uint32_t shared_bytes = 0;  // of a block, beside what the kernel declares itself
};

constexpr uint64_t CeilDivide(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Blocks with at least `count` threads.
constexpr Grid GridOf(uint64_t count, uint32_t threads) { return {CeilDivide(count, threads), threads, 0}; }

}  // namespace anydml
