// What tiles of pixels ask for while they work, so that it is near when it is wanted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/convolution/cpu/pixel_tile.h"

namespace anydml {

// Rows of memory, `stride` bytes apart. Each run of a tile asks for one of them, or for a part of it, and
// when all rows were asked for, for the next part.
struct RowsAhead {
  uintptr_t first = 0;
  uint64_t bytes = 0, stride = 0;
  uint64_t count = 0;
  uint64_t most_step = 64;       // bytes that a step asks for
  uint64_t row = 0, column = 0;  // what comes next

  bool is_done() const { return count == 0 || column >= bytes; }

  // For the tile's next turn.
  void Ask(PixelTile* tile) {
    if (is_done() || tile->run_count == 0) {
      tile->AskForNothing();
      return;
    }
    const uint64_t steps = tile->runs[0].steps;
    tile->ahead = first + row * stride + column;
    tile->ahead_step = std::min(most_step, (bytes - column) / steps + 1);
    tile->ahead_skip = stride - steps * tile->ahead_step;  // modulo 2^64
    row += tile->run_count;
    if (row < count) return;
    row = 0;
    column += steps * tile->ahead_step;
  }
};

}  // namespace anydml
