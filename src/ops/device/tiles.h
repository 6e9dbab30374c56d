// Tiles in shared memory for copies whose source and target are contiguous along different loops: tile sizes,
// and the order in which blocks process tiles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/device/nest.h"

namespace anydml {

// The order of tiles: a group of tiles along the rows, before those of the next columns. Thus both the reads
// and the writes of concurrent blocks are close together.
class TileOrder {
 public:
  TileOrder() = default;
  TileOrder(uint64_t row_tiles, uint64_t column_tiles)
      : row_tiles_(static_cast<uint32_t>(row_tiles)),
        tiles_(static_cast<uint32_t>(row_tiles * column_tiles)),
        band_tiles_(static_cast<uint32_t>(std::min<uint64_t>(kBandRows, row_tiles) * column_tiles)) {}

  uint32_t tiles() const { return tiles_.divisor(); }  // per iteration of the outer loops

  // Returns the number of that outer iteration.
  constexpr uint32_t Find(uint32_t block, uint64_t* row_tile, uint64_t* column_tile) const {
    uint32_t tile, in_band;
    const uint32_t outer = tiles_.Divide(block, &tile);
    const uint32_t band = band_tiles_.Divide(tile, &in_band);
    const uint32_t left = row_tiles_ - band * kBandRows;
    const uint32_t rows = left < kBandRows ? left : kBandRows;
    *row_tile = band * kBandRows + in_band % rows;
    *column_tile = in_band / rows;
    return outer;
  }

 private:
  static constexpr uint32_t kBandRows = 16;

  uint32_t row_tiles_ = 1;
  FastDivisor tiles_;
  FastDivisor band_tiles_;
};

// Tiles of 16 KiB, whose rows have at least a 128-byte line on both sides.
struct TransposeTile {
  uint32_t rows;     // along the source's contiguous loop
  uint32_t columns;  // along the target's contiguous loop
};
constexpr TransposeTile TransposeTileOf(uint32_t element_bytes) {
  const uint32_t rows = element_bytes == 8 ? 32 : element_bytes == 4 ? 64 : 128;
  return {rows, element_bytes == 1 ? 128u : 64u};
}
// Each thread moves four vectors of 16 bytes. Copies of single elements use the same number of threads.
inline constexpr uint32_t kTransposeThreads = 256;

}  // namespace anydml
