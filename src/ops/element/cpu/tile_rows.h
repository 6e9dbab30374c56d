// How steps walk a tile: by contiguous rows, or by blocks with an operand's strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ops/common/stream_copy.h"
#include "ops/element/cpu/steps.h"
#include "ops/element/cpu/tile_plan.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/load_store.h"

namespace anydml {

// Shorter rows are packed in a tile's registers before a loop takes them.
inline constexpr uint64_t kShortestTileRow = 32;

// A tile as loops see it: rows of `columns` contiguous elements.
struct TileShape {
  uint64_t rows;
  uint64_t columns;
};
inline TileShape ShapeOf(const Tile& tile) {
  if (tile.rank == 2 && tile.loops[1].extent >= kShortestTileRow) {
    return {tile.loops[0].extent, tile.loops[1].extent};
  }
  return {1, tile.elements};
}

// The place of an operand in a tile whose rows loops can read or write directly.
struct TileRows {
  uint64_t stride;  // in bytes
  bool uniform;
};
inline std::optional<TileRows> RowsOf(const ElementStep& step, const Tile& tile, const TileShape& shape) {
  if (tile.IsContiguous(step.operand)) return TileRows{shape.columns * step.bytes, false};
  if (tile.rank != (shape.rows > 1 ? 2u : 1u)) return {};
  const uint64_t stride = tile.loops[tile.rank - 1].loop->strides[step.operand];
  if (stride > 1) return {};
  return TileRows{shape.rows > 1 ? tile.loops[0].loop->strides[step.operand] * step.bytes : 0, stride == 0};
}

// Calls body(block, position in the register) for the blocks of a tile.
template <typename Body>
void ForEachBlock(const Tile& tile, uint32_t operand, Body&& body) {
  Block block;
  block.offset = tile.Offset(operand);
  if (tile.IsContiguous(operand)) {
    block.columns = tile.elements;
    body(block, uint64_t{0});
    return;
  }
  uint32_t outer = tile.rank;
  if (outer > 0) {
    const Tile::Loop& columns = tile.loops[--outer];
    block.columns = columns.extent;
    block.column_stride = columns.loop->strides[operand];
  }
  if (outer > 0) {
    const Tile::Loop& rows = tile.loops[--outer];
    block.rows = rows.extent;
    block.row_stride = rows.loop->strides[operand];
  }
  const uint64_t start = block.offset;
  const uint64_t elements = block.rows * block.columns;
  for (uint64_t at = 0; at < tile.elements / elements; ++at) {
    uint64_t rest = at;
    block.offset = start;
    for (uint32_t d = outer; d-- > 0; rest /= tile.loops[d].extent) {
      block.offset += rest % tile.loops[d].extent * tile.loops[d].loop->strides[operand];
    }
    body(block, at * elements);
  }
}

// Prefetches rows that are as far apart as those of a tile across a transposed tensor, where each row begins
// at an address that hardware cannot predict.
inline void AskForRows(const LoopSource& source, uint64_t rows, uint64_t row_bytes) {
#if !defined(__x86_64__)  // rows are long there
  for (uint64_t row = 0; row < rows; ++row) {
    const auto* const from = static_cast<const std::byte*>(source.data) + row * source.row_stride;
    for (uint64_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(from + at, 0, 2);
  }
#else
  (void)source, (void)rows, (void)row_bytes;
#endif
}

// FLOAT16 as FLOAT32.
inline LoopSource FloatsOf(const LoopSource& source, const TileShape& shape, std::byte* memory) {
  auto* const floats = reinterpret_cast<float*>(memory);
  for (uint64_t row = 0; row < shape.rows; ++row) {
    const auto* const from = static_cast<const std::byte*>(source.data) + row * source.row_stride;
    HalvesToFloats(reinterpret_cast<const uint16_t*>(from), floats + row * shape.columns, shape.columns);
  }
  return {.data = memory, .row_stride = shape.columns * sizeof(float)};
}

// Streams a register's numbers unchanged, or FLOAT32 as FLOAT16: a whole contiguous tile at once, or rows
// that are aligned to 64 bytes. False if the tile has neither layout.
inline bool StreamRows(const ElementStep& step, const Tile& tile, const std::byte* values,
                       std::byte* tensor) {
  const TileShape shape = tile.IsContiguous(step.operand) ? TileShape{1, tile.elements} : ShapeOf(tile);
  const auto rows = RowsOf(step, tile, shape);
  if (!rows) return false;
  std::byte* to = tensor + tile.Offset(step.operand) * step.bytes;
  const bool aligned = (reinterpret_cast<uintptr_t>(to) | (shape.rows > 1 ? rows->stride : 0)) % 64 == 0;
  if (!aligned && (step.to_halves || shape.rows > 1)) return false;
  for (uint64_t row = 0; row < shape.rows; ++row, to += rows->stride) {
    if (step.to_halves) {
      const auto* const floats = reinterpret_cast<const float*>(values) + row * shape.columns;
      StreamFloatsToHalves(floats, reinterpret_cast<uint16_t*>(to), shape.columns);
    } else {
      const uint64_t bytes = shape.columns * step.bytes;
      StreamCopy(to, values + row * bytes, bytes);
    }
  }
  return true;
}

}  // namespace anydml
