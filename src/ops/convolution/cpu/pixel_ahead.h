// What tiles of pixels prefetch while they work.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/convolution/cpu/pixel_tile.h"

namespace anydml {

// Rows of memory, `stride` bytes apart. Each run of a tile prefetches a part of one of them; after all rows,
// the next part of each.
struct RowsAhead {
  uintptr_t first = 0;
  uint64_t bytes = 0, stride = 0;
  uint64_t count = 0;
  uint64_t most_step = 64;       // most bytes to prefetch per step
  uint64_t row = 0, column = 0;  // the next place to prefetch

  bool is_done() const { return count == 0 || column >= bytes; }

  // Sets the prefetches of the tile's next run.
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
