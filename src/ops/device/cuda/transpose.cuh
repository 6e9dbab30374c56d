// Kernels that move elements through tiles in shared memory.
#pragma once

#include "ops/device/copies.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/tiles.cuh"

namespace anydml {

struct TileAt {
  uint64_t row_tile;
  uint64_t column_tile;
  uint64_t offsets[2];
};

__device__ inline TileAt FindTile(const TransposedCopy& copy, uint32_t block) {
  TileAt at;
  const uint32_t outer = copy.order.Find(block, &at.row_tile, &at.column_tile);
  copy.outer.OffsetsOf(outer, at.offsets);
  return at;
}

// Element by element, for any strides: a row of threads reads contiguously from the source and writes
// contiguously to the target.
template <typename T>
__global__ void __launch_bounds__(kTransposeThreads)
    TransposeKernel(const __grid_constant__ TransposedCopy copy) {
  constexpr uint32_t kRows = TransposeTileOf(sizeof(T)).rows, kColumns = TransposeTileOf(sizeof(T)).columns;
  constexpr uint32_t kLoads = kRows * kColumns / kTransposeThreads;
  // Lines have an odd number of words, so that neighbours in a column are in different banks.
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

template <typename T, TransposedCopy::Reads kReads>
__device__ uint4 ReadForTile(const T* from, uint64_t left) {
  if constexpr (kReads == TransposedCopy::Reads::kVectors)
    return __ldcs(reinterpret_cast<const uint4*>(from));
  constexpr uint32_t kPerWord = 4 / sizeof(T);
  const auto* const words = reinterpret_cast<const uint32_t*>(from);
  const auto word = [&](uint32_t w) { return w * kPerWord < left ? words[w] : 0u; };
  return {word(0), word(1), word(2), word(3)};
}

// Writes 16 bytes at a time: both sides are contiguous, and sizes, strides and addresses are multiples of
// what is read and written at once.
template <typename T, TransposedCopy::Reads kReads>
__global__ void __launch_bounds__(VectorTile<T>::kThreads, 1024 / VectorTile<T>::kThreads)
    TransposeVectorsKernel(const __grid_constant__ TransposedCopy copy) {
  using Tile = VectorTile<T>;
  static_assert(Tile::kThreads == kTransposeThreads);
  __shared__ Tile tile;
  WaitForPrevious();
  LetNextStart();
  const TileAt at = FindTile(copy, blockIdx.x);
  const uint64_t row = at.row_tile * Tile::kRows, column = at.column_tile * Tile::kColumns;
  const T* const from = reinterpret_cast<const T*>(copy.from) + at.offsets[DeviceCopy::kFrom] + row +
                        column * copy.columns.strides[DeviceCopy::kFrom];
  uint4 vectors[Tile::kLoads];
#pragma unroll
  for (uint32_t i = 0; i < Tile::kLoads; ++i) {
    const auto [r, c] = Tile::LoadPlace(i);
    vectors[i] = {};
    if (row + r < copy.rows.size && column + c < copy.columns.size) {
      vectors[i] = ReadForTile<T, kReads>(from + r + c * copy.columns.strides[DeviceCopy::kFrom],
                                          copy.rows.size - row - r);
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < Tile::kLoads; ++i) tile.Put(i, vectors[i]);
  __syncthreads();
  T* const to = reinterpret_cast<T*>(copy.to) + at.offsets[DeviceCopy::kTo] + column +
                row * copy.rows.strides[DeviceCopy::kTo];
#pragma unroll
  for (uint32_t i = 0; i < Tile::kStores; ++i) {
    const auto [r, c] = Tile::StorePlace(i);
    uint4 stored[Tile::kPerStore];
    tile.Get(i, stored);
#pragma unroll
    for (uint32_t e = 0; e < Tile::kPerStore; ++e) {
      if (row + r + e < copy.rows.size && column + c < copy.columns.size) {
        *reinterpret_cast<uint4*>(to + c + (r + e) * copy.rows.strides[DeviceCopy::kTo]) = stored[e];
      }
    }
  }
}

}  // namespace anydml
