// Depthwise FLOAT16 convolutions of 3x3 taps with stride 1 and all channels contiguous. A block has a band of
// some columns of an image: rows are copied to a ring buffer in shared memory, each in one piece, while
// threads walk down and add each row to three rows of outputs in registers.
#pragma once

#include "ops/convolution/cuda/depthwise/depthwise.cuh"
#include "ops/convolution/cuda/depthwise/ring_cut.h"
#include "ops/convolution/cuda/half_units.cuh"
#include "ops/device/cuda/bulk_copy.cuh"

namespace anydml {

// One dimension of a block: which of the `size` rows (or columns) from `first` on are inside the image.
struct RingSpan {
  int32_t first;
  uint32_t begin, end;

  __device__ RingSpan(uint32_t output, uint32_t padding, uint32_t size, uint32_t inputs)
      : first(static_cast<int32_t>(output) - static_cast<int32_t>(padding)) {
    begin = min(size, static_cast<uint32_t>(max(0, -first)));
    end = static_cast<uint32_t>(max(static_cast<int32_t>(begin),
                                    min(static_cast<int32_t>(size), static_cast<int32_t>(inputs) - first)));
  }
};

__global__ void __launch_bounds__(kRingThreads, kRingBlocks)
    DepthwiseRing(const __grid_constant__ ConvolutionParameters p) {
  constexpr uint32_t kV = kRingVector, kX = kRingColumns;
  constexpr uint32_t kRow = kMaxSpatial - 2, kColumn = kMaxSpatial - 1;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ BulkBarrier full[kMostRingRows];
  const DeviceShape& s = p.shape;
  const ConvolutionWindow &wy = s.windows[kRow], &wx = s.windows[kColumn];
  uint32_t part, band, vector;
  const uint32_t image = p.bands.Divide(p.runs.Divide(blockIdx.x, &part), &band);
  const uint32_t first_row = band * p.band_rows, first_column = part * p.tile_columns;
  const uint32_t rows = min(p.band_rows, wy.output - first_row);
  const uint32_t columns = min(p.tile_columns, wx.output - first_column);
  const RingSpan down(first_row, wy.start_padding, rows + 2, wy.input);
  const RingSpan along(first_column, wx.start_padding, columns + 2, wx.input);
  const uint32_t pixel = s.inner * sizeof(__half), line = (p.tile_columns + 2) * pixel;
  const uint32_t all = down.end - down.begin;  // rows that are loaded

  // Columns outside the image are set to zero once in all rows of the ring.
  const uint32_t outside = columns + 2 - (along.end - along.begin), units = pixel / 16;
  for (uint32_t i = threadIdx.x; i < outside * units; i += blockDim.x) {
    const uint32_t number = i / units;
    const uint32_t column = number < along.begin ? number : number + along.end - along.begin;
    for (uint32_t slot = 0; slot < p.ring_rows; ++slot) {
      *reinterpret_cast<uint4*>(shared + slot * line + column * pixel + i % units * 16) = uint4{};
    }
  }
  const auto load = [&](uint32_t number, uint32_t slot) {
    const auto row = static_cast<uint32_t>(down.first + static_cast<int32_t>(down.begin + number));
    const auto column = static_cast<uint32_t>(along.first + static_cast<int32_t>(along.begin));
    full[slot].Load(shared + slot * line + along.begin * pixel,
                    static_cast<const __half*>(p.input) + s.input.Matrix(image, 0) +
                        row * s.input.spatial[kRow] + uint64_t{column} * s.inner,
                    (along.end - along.begin) * pixel);
  };
  if (threadIdx.x == 0) {
    for (uint32_t slot = 0; slot < p.ring_rows; ++slot) full[slot].Initialize();
  }
  WaitForPrevious();
  LetNextStart();
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < all && i < p.ring_rows; ++i) load(i, i);
  }
  const uint32_t group = p.groups.Divide(threadIdx.x, &vector);
  const uint32_t column = group * kX, channel = vector * kV;
  const bool works = column < columns;
  float weights[3][3][kV], bias[kV] = {};
  LoadFilters<__half>(p, image, channel, weights, bias);
  __syncthreads();

  float sums[3][kX][kV] = {};  // of three rows of outputs, rotating
  const unsigned char* const from = shared + (works ? column * pixel : 0) + channel * sizeof(__half);
  __half* to = static_cast<__half*>(p.output) + s.output.Matrix(image, channel) +
               first_row * s.output.spatial[kRow] + (first_column + column) * s.output.spatial[kColumn];
  uint32_t slot = 0, turn = 0;
  for (uint32_t begin = 0; begin < rows + 2; begin += 3) {
#pragma unroll
    for (uint32_t u = 0; u < 3; ++u) {
      const uint32_t row = begin + u;
      if (row >= rows + 2) break;
      float read[kX + 2][kV] = {};
      if (row >= down.begin && row < down.end) {
        full[slot].Wait(turn);
        const unsigned char* const at = from + slot * line;
#pragma unroll
        for (uint32_t x = 0; x < kX + 2; ++x) {
          const auto words = *reinterpret_cast<const uint2*>(at + x * pixel);
          const float2 low = FloatsOf(words.x), high = FloatsOf(words.y);
          read[x][0] = low.x;
          read[x][1] = low.y;
          read[x][2] = high.x;
          read[x][3] = high.y;
        }
        const uint32_t next = row - down.begin + p.ring_rows;
        if (next < all) {
          __syncthreads();  // all threads have read the row
          if (threadIdx.x == 0) load(next, slot);
        }
        if (++slot == p.ring_rows) {
          slot = 0;
          ++turn;
        }
      }
      // The row contributes its taps 2 to the outputs two rows above, which are then complete, taps 1 to
      // those one row above, and taps 0 to its own.
#pragma unroll
      for (uint32_t x = 0; x < kX; ++x) {
#pragma unroll
        for (uint32_t i = 0; i < kV; ++i) {
          float &own = sums[u][x][i], &above = sums[(u + 2) % 3][x][i], &complete = sums[(u + 1) % 3][x][i];
          own = 0;
#pragma unroll
          for (uint32_t t = 0; t < 3; ++t) {
            own = __fmaf_rn(read[x + t][i], weights[0][t][i], own);
            above = __fmaf_rn(read[x + t][i], weights[1][t][i], above);
            complete = __fmaf_rn(read[x + t][i], weights[2][t][i], complete);
          }
        }
      }
      if (row < 2 || !works) continue;
#pragma unroll
      for (uint32_t x = 0; x < kX; ++x) {
        if (column + x >= columns) break;
        float result[kV];
#pragma unroll
        for (uint32_t i = 0; i < kV; ++i) result[i] = LimitHalf(p.limits, sums[(u + 1) % 3][x][i] + bias[i]);
        *reinterpret_cast<uint2*>(to + x * s.output.spatial[kColumn]) = {PackHalves(result[0], result[1]),
                                                                         PackHalves(result[2], result[3])};
      }
      to += s.output.spatial[kRow];
    }
  }
}

}  // namespace anydml
