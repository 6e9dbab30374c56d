// The parts of the kernel with resident weights: parameters, the pieces of shared memory, products of tiles,
// and the barrier of its blocks.
#pragma once

#include "ops/recurrent/cuda/cell.cuh"

namespace anydml::recurrent_cuda {

inline constexpr uint32_t kResidentThreads = 256;
inline constexpr uint32_t kWarps = kResidentThreads / 32;
inline constexpr uint32_t kTileRows = 16;  // sums of gates and units that are computed at a time

struct Resident : Cell {
  float* hidden;         // {2, direction, batch, unit_stride}
  float* reset;          // {direction, batch, unit_stride}
  uint32_t* arrived;     // per direction; initially 0
  uint32_t unit_stride;  // units, rounded up to a multiple of 4
  uint32_t block_units, blocks_per_direction;

  __host__ __device__ uint32_t rows() const { return gates * block_units; }
};

// Pieces of shared memory, in floats. kBatch: elements of the batch per tile.
template <uint32_t kBatch>
struct SharedLayout {
  // Rows of partial sums are 8 banks apart, rows of factors 4.
  static constexpr uint32_t kPartialStride = kBatch == 8 ? 8 : kBatch + 8;

  uint32_t k;         // numbers per row of a factor: a multiple of 8 for each warp
  uint32_t k_stride;  // of weights and states
  uint32_t weights, state, partials, sums, inputs, own_hidden, own_cell, biases, peepholes, lengths, places;
  uint32_t total;

  __host__ __device__ explicit SharedLayout(const Resident& p) {
    const auto to_tiles = [](uint32_t rows) { return (rows + kTileRows - 1) / kTileRows * kTileRows; };
    // The tiles of the last gate begin at its first row.
    const uint32_t rows = p.rows();
    const uint32_t last = p.resets_first() ? 2 * p.block_units + to_tiles(p.block_units) : 0;
    const uint32_t tile_rows = to_tiles(rows) > last ? to_tiles(rows) : last;
    k = (p.units + 8 * kWarps - 1) / (8 * kWarps) * (8 * kWarps);
    k_stride = k + 4;
    weights = 0;
    state = weights + tile_rows * k_stride;
    partials = state + kBatch * k_stride;
    sums = partials + kWarps * kTileRows * kPartialStride;
    inputs = sums + rows * kBatch;
    own_hidden = inputs + rows * kBatch;
    own_cell = own_hidden + p.block_units * kBatch;
    biases = own_cell + p.block_units * kBatch;
    peepholes = biases + 2 * rows;
    lengths = peepholes + 3 * p.block_units;
    places = lengths + kBatch;
    total = places + rows;
  }
};

// A number truncated to TF32's bits.
__device__ inline float UpperBits(float x) { return __uint_as_float(__float_as_uint(x) & 0xFFFFE000); }
// The remainder as the nearest TF32 number; 0 for infinities.
__device__ inline float RestOf(float x, float upper) {
  return x == upper ? 0 : __uint_as_float(__float_as_uint(x - upper) + 0x1000);
}

// to += a x b by a warp, for TF32 numbers: 16 rows of 8 numbers by 8 columns of 8. Thread t has of `a` rows t
// / 4 and t / 4 + 8 at t % 4, then at t % 4 + 4; of `b` column t / 4 at these two; of `to` columns t % 4 * 2
// and the next of row t / 4, then of row t / 4 + 8.
__device__ inline void MultiplyTiles(const float (&a)[4], const float (&b)[2], float (&to)[4]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// Waits for all blocks of a direction. `meeting` counts from 1.
__device__ inline void Meet(uint32_t* arrived, uint32_t meeting, uint32_t blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    // The counter may wrap.
    while (static_cast<int32_t>(*static_cast<volatile uint32_t*>(arrived) - meeting * blocks) < 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

}  // namespace anydml::recurrent_cuda
