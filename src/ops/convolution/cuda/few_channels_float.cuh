// FLOAT32 images of few channels, as at the beginning of networks: a block computes a rectangle of outputs
// for several channels; the input of its windows and its filters are in shared memory, all at once.
#pragma once

#include "ops/convolution/activation.h"
#include "ops/convolution/problem.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/tensor_cores.cuh"
#include "ops/device/nest.h"

namespace anydml::few_floats {

inline constexpr uint32_t kAcross = 16;  // outputs per row of a rectangle

struct Product {
  const float* input;
  const float* filter;
  const float* bias;  // null: none
  float* output;

  ConvolutionTensor in, out;
  ConvolutionWindow x, y;
  uint32_t channels, columns;  // of the input, and of the output
  // An output channel's taps are contiguous, in some order.
  uint32_t steps, step_channel, step_y, step_x;
  uint64_t filter_row, bias_stride;
  FastDivisor lines;  // per patch
  FastDivisor tiles_x, tiles_y, column_tiles;
  SumLimits limits;
  bool by_channels, by_rows;  // four contiguous outputs are stored at once
};

// Starts to copy 4 bytes to shared memory, or writes a zero.
__device__ __forceinline__ void StartNumber(uint32_t to, const float* from, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(exists ? 4 : 0)
               : "memory");
}

template <uint32_t kTaps, uint32_t kStride>
constexpr uint32_t PatchWidth() {
  return ((kAcross - 1) * kStride + kTaps + 3) / 4 * 4 + 4;
}

// Filters are copied eight steps at a time.
constexpr uint64_t PaddedSteps(uint64_t steps) { return (steps + 7) / 8 * 8; }

// A thread has kPixels neighbours in a row of the output, for four channels.
template <uint32_t kTaps, uint32_t kStride, uint32_t kPixels, uint32_t kDown, uint32_t kColumns>
__global__ void __launch_bounds__(kAcross / kPixels * kDown * (kColumns / 4))
    ConvolveFew(const __grid_constant__ Product p) {
  constexpr uint32_t kGroups = kColumns / 4, kThreads = kAcross / kPixels * kDown * kGroups;
  constexpr uint32_t kWidth = PatchWidth<kTaps, kStride>(), kSeen = (kAcross - 1) * kStride + kTaps;
  constexpr uint32_t kRow = kColumns + 4;
  extern __shared__ __align__(16) float numbers[];
  float* const patch = numbers;  // [channel][line][kWidth]
  float* const filters = numbers + p.channels * p.lines.divisor() * kWidth;
  uint32_t tile_column, tile_x, tile_y;
  uint32_t number = p.column_tiles.Divide(blockIdx.x, &tile_column);
  number = p.tiles_x.Divide(number, &tile_x);
  const uint32_t image = p.tiles_y.Divide(number, &tile_y), column = tile_column * kColumns;
  WaitForPrevious();
  {
    // Eight steps of four filters at a time: they are contiguous in memory and in different banks here.
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(filters));
    const uint32_t low = threadIdx.x % 8, of_four = threadIdx.x / 8 % 4, chunks = (p.steps + 7) / 8;
#pragma unroll 1
    for (uint32_t four = threadIdx.x / 32; four < kGroups; four += kThreads / 32) {
      const uint32_t o = four * 4 + of_four;
      const bool exists = column + o < p.columns;
      const float* const from = p.filter + (exists ? (column + o) * p.filter_row : 0);
#pragma unroll 4
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const uint32_t step = chunk * 8 + low;
        StartNumber(to + (step * kRow + o) * 4, from + (step < p.steps ? step : 0), exists && step < p.steps);
      }
    }
    const auto into = static_cast<uint32_t>(__cvta_generic_to_shared(patch));
    const uint32_t top = tile_y * kDown * p.y.stride - p.y.start_padding;
    const uint32_t left = tile_x * kAcross * kStride - p.x.start_padding;
    const float* const from = p.input + p.in.Matrix(image, 0);
    const uint32_t all = p.channels * p.lines.divisor() * kSeen;
    for (uint32_t i = threadIdx.x; i < all; i += kThreads) {
      const uint32_t row = i / kSeen, x = i % kSeen;
      uint32_t line;
      const uint32_t channel = p.lines.Divide(row, &line);
      // Positions before the image wrap to large numbers.
      const bool inside = top + line < p.y.input && left + x < p.x.input;
      const uint64_t offset =
          channel * p.in.channel + (top + line) * p.in.spatial[1] + (left + x) * p.in.spatial[2];
      StartNumber(into + (row * kWidth + x) * 4, from + (inside ? offset : 0), inside);
    }
  }
  const uint32_t group = threadIdx.x / 2 % kGroups;
  const uint32_t piece = threadIdx.x % 2 + threadIdx.x / (2 * kGroups) * 2;
  const uint32_t x = piece % (kAcross / kPixels) * kPixels, y = piece / (kAcross / kPixels);
  float bias[4] = {};
  if (p.bias != nullptr) {
#pragma unroll
    for (uint32_t c = 0; c < 4; ++c) {
      if (column + group * 4 + c < p.columns) bias[c] = p.bias[(column + group * 4 + c) * p.bias_stride];
    }
  }
  float sums[kPixels][4] = {};
  MarkCopies();
  EndCopies();
  __syncthreads();
  LetNextStart();
  const float* line = patch + y * p.y.stride * kWidth + x * kStride;
  const float* filter = filters + group * 4;
  for (uint32_t channel = 0; channel < p.channels; ++channel) {
    const float* row = line;
    const float* of_row = filter;
    for (uint32_t tap_y = 0; tap_y < p.y.taps; ++tap_y) {
      constexpr uint32_t kUnits = ((kPixels - 1) * kStride + kTaps + 3) / 4;
      float seen[kUnits * 4];
#pragma unroll
      for (uint32_t i = 0; i < kUnits; ++i) {
        const float4 unit = reinterpret_cast<const float4*>(row)[i];
        seen[i * 4] = unit.x;
        seen[i * 4 + 1] = unit.y;
        seen[i * 4 + 2] = unit.z;
        seen[i * 4 + 3] = unit.w;
      }
#pragma unroll
      for (uint32_t tap = 0; tap < kTaps; ++tap) {
        const float4 w = *reinterpret_cast<const float4*>(of_row + tap * p.step_x * kRow);
#pragma unroll
        for (uint32_t i = 0; i < kPixels; ++i) {
          sums[i][0] = __fmaf_rn(seen[i * kStride + tap], w.x, sums[i][0]);
          sums[i][1] = __fmaf_rn(seen[i * kStride + tap], w.y, sums[i][1]);
          sums[i][2] = __fmaf_rn(seen[i * kStride + tap], w.z, sums[i][2]);
          sums[i][3] = __fmaf_rn(seen[i * kStride + tap], w.w, sums[i][3]);
        }
      }
      row += p.y.dilation * kWidth;
      of_row += p.step_y * kRow;
    }
    line += p.lines.divisor() * kWidth;
    filter += p.step_channel * kRow;
  }
  const uint32_t out_y = tile_y * kDown + y, out_x = tile_x * kAcross + x, first = column + group * 4;
  if (out_y >= p.y.output) return;
  float* const to = p.output + p.out.Matrix(image, 0) + first * p.out.channel + out_y * p.out.spatial[1] +
                    out_x * p.out.spatial[2];
#pragma unroll
  for (uint32_t i = 0; i < kPixels; ++i) {
#pragma unroll
    for (uint32_t c = 0; c < 4; ++c) sums[i][c] = p.limits.Of(sums[i][c] + bias[c]);
  }
  if (p.by_channels) {
#pragma unroll
    for (uint32_t i = 0; i < kPixels; ++i) {
      if (out_x + i < p.x.output && first < p.columns) {
        *reinterpret_cast<float4*>(to + i * p.out.spatial[2]) =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
      }
    }
  } else if (p.by_rows) {
#pragma unroll
    for (uint32_t c = 0; c < 4; ++c) {
#pragma unroll
      for (uint32_t i = 0; i < kPixels; i += 4) {
        if (out_x + i < p.x.output && first + c < p.columns) {
          *reinterpret_cast<float4*>(to + c * p.out.channel + i) =
              make_float4(sums[i][c], sums[i + 1][c], sums[i + 2][c], sums[i + 3][c]);
        }
      }
    }
  } else {
#pragma unroll
    for (uint32_t c = 0; c < 4; ++c) {
#pragma unroll
      for (uint32_t i = 0; i < kPixels; ++i) {
        if (out_x + i < p.x.output && first + c < p.columns) {
          to[c * p.out.channel + i * p.out.spatial[2]] = sums[i][c];
        }
      }
    }
  }
}

}  // namespace anydml::few_floats
