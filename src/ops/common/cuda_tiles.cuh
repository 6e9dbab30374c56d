// Tiles in a block's memory through which elements pass whose neighbours are in one loop of the source and in
// another one of the target.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/device/nest.h"

namespace anydml {

// In which order blocks take tiles: those of so many rows before those of the next columns, so that what is
// read and written at a time is near each other on both sides.
class TileOrder {
 public:
  TileOrder() = default;
  TileOrder(uint64_t row_tiles, uint64_t column_tiles)
      : row_tiles_(static_cast<uint32_t>(row_tiles)),
        tiles_(static_cast<uint32_t>(row_tiles * column_tiles)),
        band_tiles_(static_cast<uint32_t>(std::min<uint64_t>(kBandRows, row_tiles) * column_tiles)) {}

  uint32_t tiles() const { return tiles_.divisor(); }  // of an iteration of the loops around them

  // Returns the number of that iteration.
  __device__ uint32_t Find(uint32_t block, uint64_t* row_tile, uint64_t* column_tile) const {
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

// Tiles of 16 KiB, whose rows are at least a line of 128 bytes on both sides.
template <typename T>
inline constexpr uint32_t kTransposeRows = sizeof(T) == 8   ? 32
                                           : sizeof(T) == 4 ? 64
                                                            : 128;
template <typename T>
inline constexpr uint32_t kTransposeColumns = sizeof(T) == 1 ? 128 : 64;

// Element `number` of each of some words, side by side: 16 bytes.
template <typename T, typename Word>
__device__ uint4 PackColumn(const Word (&words)[16 / sizeof(T)], uint32_t number) {
  if constexpr (sizeof(T) == 8) {
    return {static_cast<uint32_t>(words[0]), static_cast<uint32_t>(words[0] >> 32),
            static_cast<uint32_t>(words[1]), static_cast<uint32_t>(words[1] >> 32)};
  } else if constexpr (sizeof(T) == 4) {
    return {words[0], words[1], words[2], words[3]};
  } else if constexpr (sizeof(T) == 2) {
    const uint32_t halves = number == 0 ? 0x5410 : 0x7632;
    return {__byte_perm(words[0], words[1], halves), __byte_perm(words[2], words[3], halves),
            __byte_perm(words[4], words[5], halves), __byte_perm(words[6], words[7], halves)};
  } else {
    const uint32_t two = number | (4 + number) << 4;  // byte `number` of either word
    const auto four = [&](uint32_t i) {
      return __byte_perm(__byte_perm(words[i], words[i + 1], two),
                         __byte_perm(words[i + 2], words[i + 3], two), 0x5410);
    };
    return {four(0), four(4), four(8), four(12)};
  }
}

// 16 bytes at a time on both sides, four vectors of each thread. In the block's memory there are words of (at
// least) 4 bytes: a thread reads as many of them, from as many columns, as make 16 bytes of the target's
// neighbours.
template <typename T, uint32_t kColumns_ = kTransposeColumns<T>>
class VectorTile {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

 public:
  static constexpr uint32_t kRows = kTransposeRows<T>, kColumns = kColumns_;
  static constexpr uint32_t kVector = 16 / sizeof(T);  // elements
  static constexpr uint32_t kLoads = 4;                // vectors of a thread
  static constexpr uint32_t kThreads = kRows * kColumns / kVector / kLoads;
  static constexpr uint32_t kPerStore = sizeof(Word) / sizeof(T);  // vectors that a thread gets at once
  static constexpr uint32_t kStores = kLoads / kPerStore;

  struct Place {
    uint32_t row, column;
  };

  // Where the thread's vector `i` of the source is; it lies along a column. A warp has 128 bytes of each of
  // four columns.
  __device__ static Place LoadPlace(uint32_t i) {
    const uint32_t lane = threadIdx.x % 32, slot = (i * kWarps + threadIdx.x / 32) * 4 + lane / 8;
    return {(slot / kColumns * 8 + lane % 8) * kVector, slot % kColumns};
  }
  __device__ void Put(uint32_t i, const uint4& vector) {
    const Place place = LoadPlace(i);
    Word parts[16 / sizeof(Word)];
    memcpy(parts, &vector, sizeof(parts));
#pragma unroll
    for (uint32_t w = 0; w < 16 / sizeof(Word); ++w)
      words_[At(place.column, place.row / kPerStore + w)] = parts[w];
  }

  // Where the first of the target's vectors `i` is; the others are in the rows below it. A warp writes whole
  // lines of 128 bytes, of four words' rows.
  __device__ static Place StorePlace(uint32_t i) {
    const uint32_t lane = threadIdx.x % 32, task = i * kWarps + threadIdx.x / 32;
    return {(task / kColumnGroups * 4 + lane / 8) * kPerStore,
            (task % kColumnGroups * 8 + lane % 8) * kVector};
  }
  __device__ void Get(uint32_t i, uint4 (&vectors)[kPerStore]) const {
    const Place place = StorePlace(i);
    Word words[kVector];
#pragma unroll
    for (uint32_t k = 0; k < kVector; ++k) words[k] = words_[At(place.column + k, place.row / kPerStore)];
#pragma unroll
    for (uint32_t e = 0; e < kPerStore; ++e) vectors[e] = PackColumn<T>(words, e);
  }

 private:
  static constexpr uint32_t kRowWords = kRows / kPerStore, kWarps = kThreads / 32;
  static constexpr uint32_t kColumnGroups = kColumns / (8 * kVector);  // of a line each
  static_assert(kRowWords % 32 == 0 && kColumns % 32 == 0 && kLoads % kPerStore == 0);
  static_assert(kStores * kWarps == kColumnGroups * (kRowWords / 4));

  // Neither side has conflicts: a column begins one bank after the one before it, four more after 32 of them,
  // since the eight columns that a warp reads at a time are up to 16 apart.
  __device__ static uint32_t At(uint32_t column, uint32_t word) {
    return column * (kRowWords + 1) + column / 32 * 4 + word;
  }

  Word words_[kColumns * (kRowWords + 1) + kColumns / 32 * 4];
};

}  // namespace anydml
