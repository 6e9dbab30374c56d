// FLOAT16 images that change between planes of channels and channels as neighbours, by tiles in shared
// memory: what is in whole units of 16 bytes on one side may be in smaller ones on the other, as planes of
// 14x14 are.
#pragma once

#include "ops/convolution/cuda/channels_last.cuh"

namespace anydml {

inline constexpr uint32_t kHalfTile = 64;  // numbers along each side
inline constexpr uint32_t kHalfTileThreads = 256;
inline constexpr uint32_t kHalfTilePitch = kHalfTile / 2 + 1;  // words of a row

// Matrices, of which columns are neighbours in the source and rows in the target. The target has rows that
// the source does not have: zeros.
struct HalfTiles {
  const void* from = nullptr;
  void* to = nullptr;
  uint32_t rows = 0, target_rows = 0, columns = 0;
  uint64_t from_row = 0, to_column = 0;  // distances between them
  uint64_t from_image = 0, from_group = 0, to_image = 0, to_group = 0;
  FastDivisor row_tiles, column_tiles, groups;
  uint32_t count = 0;  // of tiles

  HalfTiles() = default;
  HalfTiles(uint64_t images, uint64_t group_count, uint32_t source_rows, uint32_t all_rows,
            uint32_t all_columns)
      : rows(source_rows),
        target_rows(all_rows),
        columns(all_columns),
        row_tiles((all_rows + kHalfTile - 1) / kHalfTile),
        column_tiles((all_columns + kHalfTile - 1) / kHalfTile),
        groups(static_cast<uint32_t>(group_count)),
        count(static_cast<uint32_t>(images * group_count * row_tiles.divisor() * column_tiles.divisor())) {}
};

// A thread's numbers, in units of kBytes.
template <uint32_t kBytes>
struct HalfUnit;
template <>
struct HalfUnit<16> {
  using Type = uint4;
};
template <>
struct HalfUnit<8> {
  using Type = uint2;
};
template <>
struct HalfUnit<4> {
  using Type = uint32_t;
};
template <>
struct HalfUnit<2> {
  using Type = uint16_t;
};

// Rows are read in units of kLoad bytes, columns are written in units of kStore: these divide all distances.
template <uint32_t kLoad, uint32_t kStore>
__device__ void MoveHalfTile(const HalfTiles& p, uint32_t tile, uint32_t (*words)[kHalfTilePitch]) {
  using Load = typename HalfUnit<kLoad>::Type;
  using Store = typename HalfUnit<kStore>::Type;
  constexpr uint32_t kNumbers = kLoad / 2, kPerRow = kHalfTile / kNumbers;
  constexpr uint32_t kLoads = kHalfTile * kPerRow / kHalfTileThreads;
  uint32_t column_tile, row_tile, group;
  const uint32_t image =
      p.groups.Divide(p.row_tiles.Divide(p.column_tiles.Divide(tile, &column_tile), &row_tile), &group);
  const uint32_t top = row_tile * kHalfTile, left = column_tile * kHalfTile;
  const __half* const from =
      static_cast<const __half*>(p.from) + image * p.from_image + group * p.from_group + left;
  Load loaded[kLoads];
#pragma unroll
  for (uint32_t i = 0; i < kLoads; ++i) {
    const uint32_t unit = i * kHalfTileThreads + threadIdx.x;
    const uint32_t row = top + unit / kPerRow, column = unit % kPerRow * kNumbers;
    loaded[i] = row < p.rows && left + column < p.columns
                    ? *reinterpret_cast<const Load*>(from + row * p.from_row + column)
                    : Load{};
  }
#pragma unroll
  for (uint32_t i = 0; i < kLoads; ++i) {
    const uint32_t unit = i * kHalfTileThreads + threadIdx.x;
    const uint32_t row = unit / kPerRow, column = unit % kPerRow * kNumbers;
    if constexpr (kLoad == 2) {
      reinterpret_cast<uint16_t*>(words[row])[column] = loaded[i];
    } else {
#pragma unroll
      for (uint32_t n = 0; n < kLoad / 4; ++n) {
        words[row][column / 2 + n] = reinterpret_cast<const uint32_t*>(&loaded[i])[n];
      }
    }
  }
  __syncthreads();
  // A thread has eight rows of two columns.
  const uint32_t first = threadIdx.x % 8 * 8, pair = threadIdx.x / 8;
  alignas(16) uint32_t low[4], high[4];  // read as units
#pragma unroll
  for (uint32_t n = 0; n < 4; ++n) {
    const uint32_t a = words[first + 2 * n][pair], b = words[first + 2 * n + 1][pair];
    low[n] = __byte_perm(a, b, 0x5410);
    high[n] = __byte_perm(a, b, 0x7632);
  }
  __half* const to = static_cast<__half*>(p.to) + image * p.to_image + group * p.to_group + top + first;
#pragma unroll
  for (uint32_t c = 0; c < 2; ++c) {
    const uint32_t column = left + 2 * pair + c;
    if (column >= p.columns) continue;
    const auto* const units = reinterpret_cast<const Store*>(c == 0 ? low : high);
    auto* const target = reinterpret_cast<Store*>(to + column * p.to_column);
#pragma unroll
    for (uint32_t n = 0; n < 16 / kStore; ++n) {
      if (top + first + n * (kStore / 2) < p.target_rows) target[n] = units[n];
    }
  }
}

// Brings an image's channels together; the blocks after its tiles pack filters.
struct HalfOperands {
  HalfTiles tiles;
  FilterPacking filter;
};

template <uint32_t kLoad>
__global__ void __launch_bounds__(kHalfTileThreads) PackHalfOperands(const __grid_constant__ HalfOperands q) {
  static_assert(kHalfTileThreads == kPackThreads);
  __shared__ alignas(16) uint32_t words[kHalfTile][kHalfTilePitch];
  static_assert(sizeof(words) >= kPackNumbers * sizeof(__half));
  WaitForPrevious();
  LetNextStart();
  if (blockIdx.x < q.tiles.count) return MoveHalfTile<kLoad, 16>(q.tiles, blockIdx.x, words);
  PackFilter<__half, false>(q.filter, blockIdx.x - q.tiles.count, reinterpret_cast<__half*>(words));
}

// Brings an output's channels apart.
template <uint32_t kStore>
__global__ void __launch_bounds__(kHalfTileThreads) UnpackHalfOutput(const __grid_constant__ HalfTiles p) {
  __shared__ uint32_t words[kHalfTile][kHalfTilePitch];
  WaitForPrevious();
  LetNextStart();
  MoveHalfTile<16, kStore>(p, blockIdx.x, words);
}

}  // namespace anydml
