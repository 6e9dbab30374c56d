// The launch dimensions of a GPU kernel: blocks (work groups) and threads per block.
#pragma once

#include <cstdint>

namespace anydml {

// CUDA's limit in the first dimension of a grid. A backend with a smaller limit spreads the blocks over
// several dimensions.
inline constexpr uint64_t kMaxBlocks = (uint64_t{1} << 31) - 1;

struct Grid {
  uint64_t blocks = 0;
  uint32_t threads = 0;       // per block
  uint32_t shared_bytes = 0;  // per block, in addition to the kernel's static shared memory
};

constexpr uint64_t CeilDivide(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Enough blocks for `count` threads.
constexpr Grid GridOf(uint64_t count, uint32_t threads) { return {CeilDivide(count, threads), threads, 0}; }

}  // namespace anydml
