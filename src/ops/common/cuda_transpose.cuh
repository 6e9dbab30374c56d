// Kernels that move elements through tiles in the block's memory.
#pragma once

#include <type_traits>

#include "ops/common/cuda_copies.cuh"

namespace anydml {

inline constexpr uint32_t kTransposeThreads = 256;
// Tiles of so many rows are taken before those of the next columns, so that what is read and written at a
// time is near each other on both sides.
inline constexpr uint32_t kBandRows = 16;

struct TileAt {
  uint64_t row_tile;
  uint64_t column_tile;
  uint64_t offsets[2];
};

__device__ inline TileAt FindTile(const TransposedCopy& copy, uint32_t block) {
  TileAt at;
  uint32_t tile, in_band;
  const uint32_t outer = copy.tiles.Divide(block, &tile);
  copy.outer.OffsetsOf(outer, at.offsets);
  const uint32_t band = copy.band_tiles.Divide(tile, &in_band);
  const uint32_t left = copy.row_tiles - band * kBandRows;
  const uint32_t rows = left < kBandRows ? left : kBandRows;
  at.row_tile = band * kBandRows + in_band % rows;
  at.column_tile = in_band / rows;
  return at;
}

// Tiles of 16 KiB, whose rows are at least a line of 128 bytes on both sides.
template <typename T>
inline constexpr uint32_t kTransposeRows = sizeof(T) == 8   ? 32
                                           : sizeof(T) == 4 ? 64
                                                            : 128;
template <typename T>
inline constexpr uint32_t kTransposeColumns = sizeof(T) == 1 ? 128 : 64;

// Element by element, for any strides: a row of threads reads along the source's neighbours and writes along
// the target's.
template <typename T>
__global__ void __launch_bounds__(kTransposeThreads)
    TransposeKernel(const __grid_constant__ TransposedCopy copy) {
  constexpr uint32_t kRows = kTransposeRows<T>, kColumns = kTransposeColumns<T>;
  constexpr uint32_t kLoads = kRows * kColumns / kTransposeThreads;
  // Lines of an odd number of words: what is beside each other in a column is in different banks.
  __shared__ T tile[kRows][kColumns + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
  WaitForPrevious();
  LetNextStart();
  const TileAt at = FindTile(copy, blockIdx.x);
  const uint64_t row = at.row_tile * kRows, column = at.column_tile * kColumns;
  const T* const from = reinterpret_cast<const T*>(copy.from) + at.offsets[DeviceCopy::kFrom];
  T* const to = reinterpret_cast<T*>(copy.to) + at.offsets[DeviceCopy::kTo];
#pragma unroll 16
  for (uint32_t i = 0; i < kLoads; ++i) {
    const uint32_t number = i * kTransposeThreads + threadIdx.x;
    const uint32_t r = number % kRows, c = number / kRows;
    if (row + r < copy.rows.size && column + c < copy.columns.size) {
      tile[r][c] = from[(row + r) * copy.rows.strides[DeviceCopy::kFrom] +
                        (column + c) * copy.columns.strides[DeviceCopy::kFrom]];
    }
  }
  __syncthreads();
#pragma unroll 16
  for (uint32_t i = 0; i < kLoads; ++i) {
    const uint32_t number = i * kTransposeThreads + threadIdx.x;
    const uint32_t r = number / kColumns, c = number % kColumns;
    if (row + r < copy.rows.size && column + c < copy.columns.size) {
      to[(row + r) * copy.rows.strides[DeviceCopy::kTo] +
         (column + c) * copy.columns.strides[DeviceCopy::kTo]] = tile[r][c];
    }
  }
}

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

// 16 bytes at a time on both sides: neighbours are a stride of 1 apart, and sizes, strides and addresses are
// multiples of 16 bytes. In the block's memory there are words of (at least) 4 bytes: a thread reads as many
// of them, from as many columns, as make 16 bytes of the target's neighbours. The pitch is one word more than
// a multiple of the banks, so that neither side has conflicts.
template <typename T>
__global__ void __launch_bounds__(kTransposeThreads)
    TransposeVectorsKernel(const __grid_constant__ TransposedCopy copy) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr uint32_t kRows = kTransposeRows<T>, kColumns = kTransposeColumns<T>;
  constexpr uint32_t kVector = 16 / sizeof(T), kPerWord = sizeof(Word) / sizeof(T);
  constexpr uint32_t kWordsPerVector = 16 / sizeof(Word), kRowWords = kRows / kPerWord;
  constexpr uint32_t kWarps = kTransposeThreads / 32;
  constexpr uint32_t kLoads = kRows * kColumns / kVector / kTransposeThreads;
  static_assert(kRowWords % 32 == 0 && kLoads == 4);
  __shared__ Word tile[kColumns][kRowWords + 1];
  WaitForPrevious();
  LetNextStart();
  const TileAt at = FindTile(copy, blockIdx.x);
  const uint64_t row = at.row_tile * kRows, column = at.column_tile * kColumns;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  // A warp loads 128 bytes of each of four columns.
  const T* const from = reinterpret_cast<const T*>(copy.from) + at.offsets[DeviceCopy::kFrom] + row +
                        column * copy.columns.strides[DeviceCopy::kFrom];
  uint4 vectors[kLoads];
#pragma unroll
  for (uint32_t i = 0; i < kLoads; ++i) {
    const uint32_t slot = (i * kWarps + warp) * 4 + lane / 8;
    const uint32_t c = slot % kColumns, r = (slot / kColumns * 8 + lane % 8) * kVector;
    vectors[i] = {};
    if (row + r < copy.rows.size && column + c < copy.columns.size) {
      vectors[i] =
          __ldcs(reinterpret_cast<const uint4*>(from + r + c * copy.columns.strides[DeviceCopy::kFrom]));
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < kLoads; ++i) {
    const uint32_t slot = (i * kWarps + warp) * 4 + lane / 8;
    Word* const words = &tile[slot % kColumns][(slot / kColumns * 8 + lane % 8) * kWordsPerVector];
    Word parts[kWordsPerVector];
    memcpy(parts, &vectors[i], sizeof(parts));
#pragma unroll
    for (uint32_t w = 0; w < kWordsPerVector; ++w) words[w] = parts[w];
  }
  __syncthreads();

  // A warp stores 32 / kVector vectors of each of kVector words of rows.
  constexpr uint32_t kColumnGroups = kColumns / 32;
  constexpr uint32_t kStores = kColumnGroups * (kRowWords / kVector) / kWarps;
  T* const to = reinterpret_cast<T*>(copy.to) + at.offsets[DeviceCopy::kTo] + column +
                row * copy.rows.strides[DeviceCopy::kTo];
#pragma unroll
  for (uint32_t i = 0; i < kStores; ++i) {
    const uint32_t task = i * kWarps + warp;
    const uint32_t c = task % kColumnGroups * 32 + lane / kVector * kVector;
    const uint32_t word = task / kColumnGroups * kVector + lane % kVector;
    Word words[kVector];
#pragma unroll
    for (uint32_t k = 0; k < kVector; ++k) words[k] = tile[c + k][word];
#pragma unroll
    for (uint32_t e = 0; e < kPerWord; ++e) {
      const uint32_t r = word * kPerWord + e;
      if (row + r < copy.rows.size && column + c < copy.columns.size) {
        *reinterpret_cast<uint4*>(to + c + r * copy.rows.strides[DeviceCopy::kTo]) = PackColumn<T>(words, e);
      }
    }
  }
}

}  // namespace anydml
