// A tile: adjacent sequences that are not packed, copied so that they are.
#pragma once

#include <cstdint>

#include "ops/top_k/candidate.h"

namespace anydml {

// How many sequences of n elements to copy at a time: whole cache lines as long as the tile stays in L2,
// fewer for very long sequences.
uint64_t TileRows(uint64_t n, uint64_t element_bytes, uint64_t neighbours);

// tile[r * n + i] = data[r * row_stride + i * stride]
template <typename Bits>
void FillTile(const Bits* data, uint64_t row_stride, uint64_t stride, uint64_t rows, uint64_t n, Bits* tile);

}  // namespace anydml
