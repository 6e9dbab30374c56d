// Converts FLOAT16 images between planes and channels-last, by tiles in shared memory: one side has whole
// units of 16 bytes, the other may have smaller ones, as planes of 14x14 do.
#pragma once

#include "ops/convolution/cuda/channels_last.cuh"
#include "ops/convolution/cuda/half_units.cuh"
#include "ops/convolution/cuda/product_cut.h"
#include "ops/convolution/cuda/store_sums.cuh"

namespace anydml {

inline constexpr uint32_t kHalfTile = 64;  // numbers along each side
inline constexpr uint32_t kHalfTileThreads = 256;
inline constexpr uint32_t kHalfTilePitch = kHalfTile / 2 + 1;  // words per row

// Matrices with contiguous columns in the source and contiguous rows in the target. Rows of the target that
// the source does not have become zero.
struct HalfTiles {
  const void* from = nullptr;
  void* to = nullptr;
  uint32_t rows = 0, target_rows = 0, columns = 0;
  uint64_t from_row = 0, to_column = 0;  // strides
  uint64_t from_image = 0, from_group = 0, to_image = 0, to_group = 0;
  FastDivisor row_tiles, column_tiles, groups;
  uint32_t count = 0;  // number of tiles
  // If both sides have whole units, tiles go through registers as squares; only for many tiles, because each
  // thread has much work.
  bool by_squares = false;

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

  // `unit`: bytes per access on the side that need not have whole units.
  void ChooseSquares(uint32_t unit) {
    constexpr uint32_t kManyTiles = 512;
    by_squares = unit == 16 && count >= kManyTiles;
  }
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

// What is done to numbers in passing.
struct NothingElse {
  static constexpr bool kExists = false;
};

// Columns are channels, and the added tensor is laid out as the target.
struct HalfTail {
  static constexpr bool kExists = true;
  WindowTail tail;

  __device__ __forceinline__ ColumnNumbers NumbersOf(uint32_t channel) const {
    ColumnNumbers numbers;
    if (tail.numbers[0] != nullptr) numbers.LoadTail<__half>(tail, channel);
    return numbers;
  }
  __device__ __forceinline__ void Normalize(const ColumnNumbers& numbers, uint32_t (&words)[4]) const {
    if (tail.numbers[0] == nullptr) return;
#pragma unroll
    for (uint32_t& word : words) {
      const float2 x = FloatsOf(word);
      const auto of = [&](float number) { return (number - numbers.mean) * numbers.factor + numbers.shift; };
      word = Finish(tail.limits, of(x.x), of(x.y));
    }
  }
  template <typename Unit>
  __device__ __forceinline__ Unit Add(Unit unit, uint64_t offset) const {
    if (tail.added == nullptr) return unit;
    const Unit loaded = *reinterpret_cast<const Unit*>(static_cast<const __half*>(tail.added) + offset);
    if constexpr (sizeof(Unit) < sizeof(uint32_t)) {
      const auto half_of = [](const Unit& of) { return *reinterpret_cast<const __half*>(&of); };
      const __half sum = AddToSum(tail, half_of(unit), half_of(loaded));
      return *reinterpret_cast<const Unit*>(&sum);
    } else {
      auto* const words = reinterpret_cast<uint32_t*>(&unit);
      const auto* const added = reinterpret_cast<const uint32_t*>(&loaded);
#pragma unroll
      for (uint32_t i = 0; i < sizeof(Unit) / sizeof(uint32_t); ++i) {
        const float2 x = FloatsOf(words[i]), y = FloatsOf(added[i]);
        words[i] = Finish(tail.sum_limits, x.x + y.x, x.y + y.y);
      }
      return unit;
    }
  }

 private:
  __device__ static __forceinline__ uint32_t Finish(const SumLimits& limits, float low, float high) {
    return WithOneNan(PackHalves(LimitHalf(limits, low), LimitHalf(limits, high)));
  }
};

// Rows are read in units of kLoad bytes, columns are written in units of kStore; these divide all strides.
template <uint32_t kLoad, uint32_t kStore, class Rest = NothingElse>
__device__ void MoveHalfTile(const HalfTiles& p, uint32_t tile, uint32_t (*words)[kHalfTilePitch],
                             const Rest& rest = {}) {
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
  // A thread has eight rows of two columns; the numbers for these are loaded together with them.
  const uint32_t first = threadIdx.x % 8 * 8, pair = threadIdx.x / 8;
  ColumnNumbers numbers[2];
  if constexpr (Rest::kExists) {
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
      if (left + 2 * pair + c < p.columns) numbers[c] = rest.NumbersOf(left + 2 * pair + c);
    }
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
  alignas(16) uint32_t low[4], high[4];  // read as units
#pragma unroll
  for (uint32_t n = 0; n < 4; ++n) {
    const uint32_t a = words[first + 2 * n][pair], b = words[first + 2 * n + 1][pair];
    low[n] = __byte_perm(a, b, 0x5410);
    high[n] = __byte_perm(a, b, 0x7632);
  }
  const uint64_t to = image * p.to_image + group * p.to_group + top + first;
#pragma unroll
  for (uint32_t c = 0; c < 2; ++c) {
    const uint32_t column = left + 2 * pair + c;
    if (column >= p.columns) continue;
    if constexpr (Rest::kExists) rest.Normalize(numbers[c], c == 0 ? low : high);
    const auto* const units = reinterpret_cast<const Store*>(c == 0 ? low : high);
    const uint64_t offset = to + column * p.to_column;
    auto* const target = reinterpret_cast<Store*>(static_cast<__half*>(p.to) + offset);
#pragma unroll
    for (uint32_t n = 0; n < 16 / kStore; ++n) {
      if (top + first + n * (kStore / 2) >= p.target_rows) continue;
      if constexpr (Rest::kExists) {
        target[n] = rest.Add(units[n], offset + n * (kStore / 2));
      } else {
        target[n] = units[n];
      }
    }
  }
}

// If both sides have whole units, tiles go through registers only: a thread has a square of eight by eight
// numbers, a block as many tiles as it has threads for.
inline constexpr uint32_t kHalfSquares = (kHalfTile / kHalfUnit) * (kHalfTile / kHalfUnit);

// For the columns of a block's tiles, which are channels: mean, factor and shift.
struct HalfColumns {
  float numbers[3][kHalfTileThreads / kHalfSquares][kHalfTile];
};

template <class Rest = NothingElse>
__device__ void MoveHalfSquares(const HalfTiles& p, HalfColumns* shared = nullptr, const Rest& rest = {}) {
  const uint32_t number = threadIdx.x / kHalfSquares;
  const uint32_t tile = blockIdx.x * (blockDim.x / kHalfSquares) + number;
  uint32_t column_tile, row_tile, group;
  const uint32_t image =
      p.groups.Divide(p.row_tiles.Divide(p.column_tiles.Divide(tile, &column_tile), &row_tile), &group);
  // A warp reads whole lines and writes half lines; the reverse, and a mixture, are slower.
  const uint32_t top = row_tile * kHalfTile + (threadIdx.x % 4 + threadIdx.x / 32 % 2 * 4) * kHalfUnit;
  const uint32_t left = column_tile * kHalfTile, across = threadIdx.x / 4 % 8 * kHalfUnit;
  const bool exists = tile < p.count && top < p.target_rows && left + across < p.columns;
  const __half* const from =
      static_cast<const __half*>(p.from) + image * p.from_image + group * p.from_group + left + across;
  uint4 rows[kHalfUnit];
#pragma unroll
  for (uint32_t i = 0; i < kHalfUnit; ++i) {
    // Not read again: leave the cache to what is written.
    rows[i] = exists && top + i < p.rows
                  ? __ldcs(reinterpret_cast<const uint4*>(from + (top + i) * p.from_row))
                  : uint4{};
  }
  if constexpr (Rest::kExists) {
    const uint32_t column = threadIdx.x % kHalfSquares;
    if (tile < p.count && left + column < p.columns) {
      const ColumnNumbers numbers = rest.NumbersOf(left + column);
      shared->numbers[0][number][column] = numbers.mean;
      shared->numbers[1][number][column] = numbers.factor;
      shared->numbers[2][number][column] = numbers.shift;
    }
    __syncthreads();
  }
  if (!exists) return;
  const uint64_t to = image * p.to_image + group * p.to_group + top;
#pragma unroll
  for (uint32_t i = 0; i < kHalfUnit; ++i) {
    alignas(16) uint32_t words[4];
#pragma unroll
    for (uint32_t n = 0; n < 4; ++n) words[n] = PairOf(rows[2 * n], rows[2 * n + 1], i);
    const uint64_t offset = to + (left + across + i) * p.to_column;
    if constexpr (Rest::kExists) {
      const auto number_of = [&](uint32_t which) { return shared->numbers[which][number][across + i]; };
      rest.Normalize({0, number_of(0), number_of(1), number_of(2)}, words);
      const uint4 sum = rest.Add(*reinterpret_cast<const uint4*>(words), offset);
      *reinterpret_cast<uint4*>(static_cast<__half*>(p.to) + offset) = sum;
    } else {
      StoreHalfUnit(words, static_cast<__half*>(p.to) + offset);
    }
  }
}

// How tiles are launched.
struct HalfLaunch {
  uint32_t threads = kHalfTileThreads;
  uint64_t blocks;

  HalfLaunch(const HalfTiles& tiles, bool packs_filter) : blocks(tiles.count) {
    if (!tiles.by_squares) return;
    if (!packs_filter) threads = 2 * kHalfSquares;
    blocks = DivideUp(tiles.count, threads / kHalfSquares);
  }
};

// Converts an image to channels-last; the blocks after its tiles pack filters.
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
  const uint32_t tiles = q.tiles.by_squares ? blockDim.x / kHalfSquares : 1;
  const uint32_t blocks = (q.tiles.count + tiles - 1) / tiles;
  if (blockIdx.x >= blocks) {
    PackFilter<__half, false>(q.filter, blockIdx.x - blocks, reinterpret_cast<__half*>(words));
  } else if (kLoad == 16 && q.tiles.by_squares) {
    MoveHalfSquares(q.tiles);
  } else {
    MoveHalfTile<kLoad, 16>(q.tiles, blockIdx.x, words);
  }
}

// Converts an output to planes.
template <uint32_t kStore>
__global__ void __launch_bounds__(kHalfTileThreads) UnpackHalfOutput(const __grid_constant__ HalfTiles p) {
  WaitForPrevious();
  LetNextStart();
  __shared__ uint32_t words[kHalfTile][kHalfTilePitch];
  if (kStore == 16 && p.by_squares) {
    MoveHalfSquares(p);
  } else {
    MoveHalfTile<16, kStore>(p, blockIdx.x, words);
  }
}

struct HalfOutput {
  HalfTiles tiles;
  HalfTail rest;
};

// The same with a convolution's tail.
template <uint32_t kStore>
__global__ void __launch_bounds__(kHalfTileThreads) FinishHalfOutput(const __grid_constant__ HalfOutput p) {
  WaitForPrevious();
  LetNextStart();
  __shared__ uint32_t words[kHalfTile][kHalfTilePitch];
  if (kStore == 16 && p.tiles.by_squares) {
    static_assert(sizeof(words) >= sizeof(HalfColumns));
    MoveHalfSquares(p.tiles, reinterpret_cast<HalfColumns*>(words), p.rest);
  } else {
    MoveHalfTile<16, kStore>(p.tiles, blockIdx.x, words, p.rest);
  }
}

}  // namespace anydml
