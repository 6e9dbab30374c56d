// Depthwise convolutions of 3x3 taps with stride 1 and contiguous channels. A block copies a padded tile of
// the image to shared memory, a line of channels wide; a thread has some of these channels and walks along
// the columns with a window of the tile's rows in registers.
#pragma once

#include "ops/convolution/cuda/depthwise/depthwise.cuh"
#include "ops/device/cuda/tensor_cores.cuh"

namespace anydml {

template <typename T, uint32_t kCount>
struct alignas(kCount * sizeof(T)) PackedNumbers {
  T x[kCount];
};

template <uint32_t kCount>
__device__ __forceinline__ void StoreNumbers(const float (&numbers)[kCount], float* to) {
  PackedNumbers<float, kCount> packed;
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) packed.x[i] = numbers[i];
  *reinterpret_cast<PackedNumbers<float, kCount>*>(to) = packed;
}
template <uint32_t kCount>
__device__ __forceinline__ void StoreNumbers(const float (&numbers)[kCount], __half* to) {
  PackedNumbers<__half, kCount> packed;
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) packed.x[i] = __float2half_rn(numbers[i]);
  *reinterpret_cast<PackedNumbers<__half, kCount>*>(to) = packed;
}

template <typename T, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    DepthwiseTiles(const __grid_constant__ ConvolutionParameters p) {
  constexpr uint32_t kVector = Tile::kVector, kRows = Tile::kRows, kUnits = Tile::kBytes / 16;
  constexpr uint32_t kY = kMaxSpatial - 2, kX = kMaxSpatial - 1;
  extern __shared__ __align__(16) unsigned char shared[];
  WaitForPrevious();
  LetNextStart();
  const DeviceShape& s = p.shape;
  const ConvolutionWindow &wy = s.windows[kY], &wx = s.windows[kX];
  uint32_t chunk, part, band;
  const uint32_t image = p.bands.Divide(p.runs.Divide(p.groups.Divide(blockIdx.x, &chunk), &part), &band);
  const uint32_t first_row = band * kRows, first_column = part * p.tile_columns, wide = p.tile_columns + 2;

  {
    const uint32_t unit = threadIdx.x % kUnits, group = chunk * Tile::kChannels + unit * (16 / sizeof(T));
    const uint32_t top = first_row - wy.start_padding;  // rows before the image wrap to large numbers
    auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + threadIdx.x * 16;
    for (uint32_t column = threadIdx.x / kUnits; column < wide;
         column += Tile::kThreads / kUnits, to += Tile::kThreads * 16) {
      const uint32_t x = first_column + column - wx.start_padding;
      const bool exists = x < wx.input && group < s.inner;
      uint64_t from = s.input.Matrix(image, group) + x * s.input.spatial[kX] +
                      static_cast<uint64_t>(static_cast<int32_t>(top)) * s.input.spatial[kY];
#pragma unroll
      for (uint32_t row = 0; row < kRows + 2; ++row, from += s.input.spatial[kY]) {
        const bool inside = exists && top + row < wy.input;
        StartCopy(to + row * wide * Tile::kBytes, static_cast<const T*>(p.input) + (inside ? from : 0),
                  inside);
      }
    }
  }
  const uint32_t group = chunk * Tile::kChannels + threadIdx.x % Tile::kAcross * kVector;
  const uint32_t begin = threadIdx.x / Tile::kAcross * p.segment;
  const uint32_t columns = min(wx.output - first_column, p.tile_columns);
  const uint32_t end = min(begin + p.segment, columns);
  const bool works = begin < end && group < s.inner;
  float weights[3][3][kVector] = {}, bias[kVector] = {};
  if (works) LoadFilters<T>(p, image, group, weights, bias);
  EndCopies();
  __syncthreads();
  if (!works) return;

  const T* from =
      reinterpret_cast<const T*>(shared) + begin * Tile::kChannels + threadIdx.x % Tile::kAcross * kVector;
  uint64_t to = s.output.Matrix(image, group) + first_row * s.output.spatial[kY] +
                (first_column + begin) * s.output.spatial[kX];
  const uint32_t rows = wy.output - first_row, line = wide * Tile::kChannels;
  float window[3][kRows + 2][kVector];  // rotating columns
  const auto read = [&](float(&column)[kRows + 2][kVector]) {
#pragma unroll
    for (uint32_t r = 0; r < kRows + 2; ++r) {
      const auto packed = *reinterpret_cast<const PackedNumbers<T, kVector>*>(from + r * line);
#pragma unroll
      for (uint32_t i = 0; i < kVector; ++i) column[r][i] = static_cast<float>(packed.x[i]);
    }
    from += Tile::kChannels;
  };
  read(window[0]);
  read(window[1]);
  for (uint32_t x = begin; x < end; x += 3) {
#pragma unroll
    for (uint32_t turn = 0; turn < 3; ++turn) {
      if (x + turn >= end) break;
      read(window[(turn + 2) % 3]);
#pragma unroll
      for (uint32_t r = 0; r < kRows; ++r) {
        float sums[kVector] = {};
#pragma unroll
        for (uint32_t t = 0; t < 9; ++t) {
#pragma unroll
          for (uint32_t i = 0; i < kVector; ++i) {
            sums[i] = __fmaf_rn(window[(turn + t % 3) % 3][r + t / 3][i], weights[t / 3][t % 3][i], sums[i]);
          }
        }
        if (r >= rows) continue;
#pragma unroll
        for (uint32_t i = 0; i < kVector; ++i) sums[i] += bias[i];
        if (p.limits.Any()) {
#pragma unroll
          for (float& sum : sums) sum = p.limits.Of(sum);
        }
        const uint64_t at = to + r * s.output.spatial[kY];
        if (p.half_output) {
          StoreNumbers(sums, static_cast<__half*>(p.output) + at);
        } else {
          StoreNumbers(sums, static_cast<float*>(p.output) + at);
        }
      }
      to += s.output.spatial[kX];
    }
  }
}

}  // namespace anydml
