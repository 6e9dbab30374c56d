// Tiles of matrix products: both operands pass through shared memory, sums stay in registers. Plain data, the
// same for every GPU backend.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/device/grid.h"

namespace anydml {

inline constexpr uint32_t kTileThreads = 256;  // 16 by 16; each thread computes a part of the tile
inline constexpr uint32_t kTileSteps = 16;     // steps along k per stage

// How a product is divided for a device: with the largest tile that occupies every multiprocessor, and split
// along k if even the smallest tile does not. The caller adds the partial sums in a fixed order.
struct ProductTiles {
  uint32_t tile = 128;
  uint32_t splits = 1;
  uint32_t steps_per_split = 0;
  uint64_t tiles = 0;  // of all matrices and parts

  ProductTiles() = default;
  ProductTiles(uint64_t matrices, uint32_t m, uint32_t n, uint32_t k, uint32_t multiprocessors) {
    const auto count = [&](uint32_t size) { return matrices * CeilDivide(m, size) * CeilDivide(n, size); };
    const uint32_t shorter = m < n ? m : n;
    while (tile > 32 && (count(tile) < multiprocessors || shorter <= tile / 2)) tile /= 2;
    constexpr uint32_t kLeastSteps = 256, kMostSplits = 64;
    const uint64_t wanted = 2 * uint64_t{multiprocessors} / count(tile);
    const uint64_t possible = k / kLeastSteps < kMostSplits ? k / kLeastSteps : kMostSplits;
    const uint64_t parts = wanted < possible ? wanted : possible;
    splits = parts < 1 ? 1 : static_cast<uint32_t>(parts);
    steps_per_split = (k / splits + (k % splits != 0 ? 1 : 0) + kTileSteps - 1) / kTileSteps * kTileSteps;
    splits = k / steps_per_split + (k % steps_per_split != 0 ? 1 : 0);
    tiles = count(tile) * splits;
  }
};

// The tile that a block computes.
struct TilePlace {
  uint32_t row, column;  // offset of its first element
  uint32_t matrix;
  uint32_t split;

  constexpr TilePlace(uint64_t number, uint32_t tile, uint32_t m, uint32_t n, uint32_t matrices) {
    const uint32_t columns = (n - 1) / tile + 1;
    const uint32_t per_matrix = columns * ((m - 1) / tile + 1);
    const auto within = static_cast<uint32_t>(number % per_matrix);
    number /= per_matrix;
    matrix = static_cast<uint32_t>(number % matrices);
    split = static_cast<uint32_t>(number / matrices);
    row = within / columns * tile;
    column = within % columns * tile;
  }
};

// One block per tile, up to the limit; each block then continues with further tiles.
inline Grid GridOf(const ProductTiles& tiles) {
  return {std::min<uint64_t>(tiles.tiles, uint64_t{1} << 30), kTileThreads};
}
// For adding the partial sums of that many elements: one thread per element, up to the limit.
inline Grid PartsGridOf(uint64_t elements) {
  return {std::min<uint64_t>(CeilDivide(elements, kTileThreads), 65536), kTileThreads};
}

}  // namespace anydml
