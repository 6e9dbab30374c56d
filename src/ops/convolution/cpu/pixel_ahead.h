// What tiles of pixels ask for while they work, so that it is near when it is wanted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/convolution/cpu/pixel_tile.h"

namespace anydml {

// Rows of memory, `stride` bytes apart. Each run of a tile asks for one of them.
struct RowsAhead {
  uintptr_t first = 0;
  uint64_t bytes = 0, stride = 0;
  uint64_t count = 0;  // of those that are left

  // For the tile's next turn.
  void Ask(PixelTile* tile) {
    constexpr uint64_t kLineBytes = 64;
    if (count == 0 || tile->run_count == 0) {
      tile->AskForNothing();
      return;
    }
    tile->ahead = first;
    const uint64_t steps = tile->runs[0].steps;
    tile->ahead_step = std::min(kLineBytes, bytes / steps + 1);
    tile->ahead_skip = stride - steps * tile->ahead_step;  // modulo 2^64
    const uint64_t asked = std::min<uint64_t>(count, tile->run_count);
    count -= asked;
    first += asked * stride;
  }
};

}  // namespace anydml
