// FLOAT16 convolutions of one tap with few channels: the memory decides how long they take, so nothing goes
// through shared memory but the filters. A warp loads units of 16 bytes, multiplies them on tensor cores and
// stores units of 16 bytes. Which channel is which step of a product, and which position or channel is which
// of its rows and columns, is free as long as both factors agree: they are numbered so that the numbers of a
// loaded or stored unit belong to one thread.
#pragma once

#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_nest.cuh"
#include "ops/common/tensor_cores.cuh"
#include "ops/convolution/cuda/half_units.cuh"
#include "ops/convolution/cuda/window_sums.cuh"

namespace anydml {

// Input channels are taken by 32: each of four threads beside each other has eight of them.
inline constexpr uint32_t kPointSteps = 32;
inline constexpr uint32_t kPointThreads = 128;  // of a block, at most

struct PointProduct {
  const __half* input;
  const __half* filter;
  const __half* bias;  // null: none
  __half* output;
  uint32_t inputs, outputs;  // channels
  uint32_t positions;        // of an image
  uint32_t tiles;
  FastDivisor tiles_per_image;
  FastDivisor parts;     // of the output's channels, of which a block has one
  uint32_t part_groups;  // of channels, as many as a product has columns or rows
  // Between positions where channels are neighbours, else between channels; and between images.
  uint32_t input_stride, output_stride, filter_row;
  uint64_t input_image, output_image;
  uint64_t bias_stride;
  SumLimits limits;
  WindowTail tail;  // no normalisation
};

__device__ __forceinline__ void PutPointBias(const PointProduct& p, uint32_t first, uint32_t count,
                                             float* to) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const uint32_t channel = first + i;
    const bool exists = p.bias != nullptr && channel < p.outputs;
    to[i] = exists ? __half2float(p.bias[channel * p.bias_stride]) : 0.0f;
  }
}

__device__ __forceinline__ uint4 LoadPointFilter(const PointProduct& p, uint32_t channel, uint32_t input) {
  if (channel >= p.outputs || input >= p.inputs) return {};
  return LoadHalfUnit(p.filter + channel * p.filter_row + input);
}

// Two sums, rounded, and what is added to them.
__device__ __forceinline__ uint32_t FinishPair(const PointProduct& p, float low, float high, bool adds,
                                               uint32_t added) {
  uint32_t word = PackHalves(LimitHalf(p.limits, low), LimitHalf(p.limits, high));
  if (!adds) return word;
  auto* const halves = reinterpret_cast<__half*>(&word);
  const auto* const others = reinterpret_cast<const __half*>(&added);
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i) halves[i] = AddToSum(p.tail, halves[i], others[i]);
  return word;
}

// Into channels that are neighbours: rows of the products are positions, columns channels, 32 at a time, of
// which a thread has eight that follow each other. A warp has kTiles x 16 positions; of planes 64, of which
// eight that follow each other are two rows of each of four products, kTiles of them at a time; nothing is
// added to these.
inline constexpr uint32_t kPointColumns = 32;

template <bool kPlanes, uint32_t kGroups, uint32_t kTiles>
__global__ void __launch_bounds__(kPointThreads, 4) PointsToChannels(const __grid_constant__ PointProduct p) {
  constexpr uint32_t kAll = kPlanes ? 4 : kTiles, kUnits = kPlanes ? kHalfUnit : 2 * kTiles;
  extern __shared__ __align__(16) unsigned char shared[];
  WaitForPrevious();
  LetNextStart();
  uint32_t part;
  const uint32_t warps = blockDim.x / 32, lane = threadIdx.x % 32, row = lane / 4, unit = lane % 4;
  const uint32_t number = p.parts.Divide(blockIdx.x, &part) * warps + threadIdx.x / 32;
  const uint32_t first = part * p.part_groups * kPointColumns;
  const uint32_t groups = min(p.part_groups, (p.outputs - first + kPointColumns - 1) / kPointColumns);
  auto* const filters = reinterpret_cast<uint4*>(shared);  // [group][steps][product][lane]
  auto* const bias = reinterpret_cast<float*>(filters + p.part_groups * kGroups * 128);
  for (uint32_t i = threadIdx.x; i < groups * kGroups * 128; i += blockDim.x) {
    const uint32_t column = i / 4 % 8, product = i / 32 % 4, steps = i / 128 % kGroups,
                   group = i / 128 / kGroups;
    filters[i] = LoadPointFilter(p, first + group * kPointColumns + column / 2 * 8 + 2 * product + column % 2,
                                 steps * kPointSteps + i % 4 * kHalfUnit);
  }
  PutPointBias(p, first, groups * kPointColumns, bias);
  __syncthreads();

  const bool adds = !kPlanes && p.tail.added != nullptr;
  const uint32_t all_warps = gridDim.x / p.parts.divisor() * warps;
  for (uint32_t tile = number; tile < p.tiles; tile += all_warps) {
    uint32_t position;
    const uint32_t image = p.tiles_per_image.Divide(tile, &position);
    position = kPlanes ? position * 64 + row * kHalfUnit : position * (kTiles * 16) + row;
    const __half* const from = p.input + image * p.input_image + (kPlanes ? position : unit * kHalfUnit);
    uint4 x[kGroups][kUnits];
#pragma unroll
    for (uint32_t k = 0; k < kGroups; ++k) {
      const uint32_t channel = k * kPointSteps + unit * kHalfUnit;
#pragma unroll
      for (uint32_t i = 0; i < kUnits; ++i) {
        const bool exists = channel < p.inputs && (kPlanes ? position : position + i * 8) < p.positions;
        const uint32_t offset =
            kPlanes ? (channel + i) * p.input_stride : (position + i * 8) * p.input_stride + k * kPointSteps;
        x[k][i] = exists ? LoadHalfUnit(from + offset) : uint4{};
      }
    }
#pragma unroll
    for (uint32_t begin = 0; begin < kAll; begin += kTiles) {
      LeftTile left[kTiles][kGroups][2];
#pragma unroll
      for (uint32_t i = 0; i < kTiles; ++i) {
#pragma unroll
        for (uint32_t k = 0; k < kGroups; ++k) {
#pragma unroll
          for (uint32_t s = 0; s < 2; ++s) {
#pragma unroll
            for (uint32_t r = 0; r < 4; ++r) {
              left[i][k][s].registers[r] =
                  kPlanes
                      ? PairOf(x[k][4 * s + r / 2 * 2], x[k][4 * s + r / 2 * 2 + 1], 2 * (begin + i) + r % 2)
                      : WordOf(x[k][(2 * i + r % 2) % kUnits], 2 * s + r / 2);
            }
          }
        }
      }
#pragma unroll 1
      for (uint32_t group = 0; group < groups; ++group) {
        const uint32_t channel = first + group * kPointColumns + unit * kHalfUnit;
        const auto row_of = [&](uint32_t i, uint32_t h) {
          return kPlanes ? position + 2 * (begin + i) + h : position + i * 16 + h * 8;
        };
        const auto offset_of = [&](uint32_t at) {
          return image * p.output_image + uint64_t{at} * p.output_stride + channel;
        };
        const auto exists = [&](uint32_t at) { return at < p.positions && channel < p.outputs; };
        uint4 added[kTiles][2] = {};
        if (adds) {
#pragma unroll
          for (uint32_t i = 0; i < kTiles * 2; ++i) {
            const uint32_t at = row_of(i / 2, i % 2);
            if (!exists(at)) continue;
            added[i / 2][i % 2] = LoadHalfUnit(static_cast<const __half*>(p.tail.added) + offset_of(at));
          }
        }
        SumTile sums[kTiles][4] = {};
#pragma unroll
        for (uint32_t k = 0; k < kGroups; ++k) {
#pragma unroll
          for (uint32_t j = 0; j < 4; ++j) {
            const uint4 right = filters[((group * kGroups + k) * 4 + j) * 32 + lane];
#pragma unroll
            for (uint32_t i = 0; i < kTiles; ++i) {
              Multiply(left[i][k][0], right.x, right.y, &sums[i][j]);
              Multiply(left[i][k][1], right.z, right.w, &sums[i][j]);
            }
          }
        }
        float biases[kHalfUnit];
#pragma unroll
        for (uint32_t i = 0; i < kHalfUnit; ++i)
          biases[i] = bias[group * kPointColumns + unit * kHalfUnit + i];
#pragma unroll
        for (uint32_t i = 0; i < kTiles; ++i) {
#pragma unroll
          for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t at = row_of(i, h);
            uint32_t words[4];
#pragma unroll
            for (uint32_t j = 0; j < 4; ++j) {
              const float* const pair = sums[i][j].x + 2 * h;
              words[j] = FinishPair(p, pair[0] + biases[2 * j], pair[1] + biases[2 * j + 1], adds,
                                    WordOf(added[i][h], j));
            }
            if (exists(at)) StoreHalfUnit(words, p.output + offset_of(at));
          }
        }
      }
    }
  }
}

// Into planes, from channels that are neighbours: rows of the products are channels, 16 at a time, columns
// positions, of which a thread has 2 * kProducts that follow each other.
inline constexpr uint32_t kPointRows = 16;

template <uint32_t kGroups, uint32_t kProducts>
__global__ void __launch_bounds__(kPointThreads, 4) PointsToPlanes(const __grid_constant__ PointProduct p) {
  constexpr uint32_t kRun = 2 * kProducts;
  struct alignas(kProducts * 4) Run {
    uint32_t words[kProducts];
  };
  extern __shared__ __align__(16) unsigned char shared[];
  WaitForPrevious();
  LetNextStart();
  uint32_t part;
  const uint32_t warps = blockDim.x / 32, lane = threadIdx.x % 32, row = lane / 4, unit = lane % 4;
  const uint32_t number = p.parts.Divide(blockIdx.x, &part) * warps + threadIdx.x / 32;
  const uint32_t first = part * p.part_groups * kPointRows;
  const uint32_t groups = min(p.part_groups, (p.outputs - first + kPointRows - 1) / kPointRows);
  auto* const filters = reinterpret_cast<uint4*>(shared);  // [group][steps][upper or lower rows][lane]
  auto* const bias = reinterpret_cast<float*>(filters + p.part_groups * kGroups * 64);
  for (uint32_t i = threadIdx.x; i < groups * kGroups * 64; i += blockDim.x) {
    const uint32_t steps = i / 64 % kGroups, group = i / 64 / kGroups;
    filters[i] =
        LoadPointFilter(p, first + group * kPointRows + i / 4 % 16, steps * kPointSteps + i % 4 * kHalfUnit);
  }
  PutPointBias(p, first, groups * kPointRows, bias);
  __syncthreads();

  const bool adds = p.tail.added != nullptr;
  const uint32_t all_warps = gridDim.x / p.parts.divisor() * warps;
  for (uint32_t tile = number; tile < p.tiles; tile += all_warps) {
    uint32_t begin;
    const uint32_t image = p.tiles_per_image.Divide(tile, &begin);
    begin *= 4 * kRun;
    const uint32_t position = begin + row / 2 * kRun + row % 2, target = begin + unit * kRun;
    const __half* const from = p.input + image * p.input_image + unit * kHalfUnit;
    uint4 x[kProducts][kGroups];
#pragma unroll
    for (uint32_t j = 0; j < kProducts; ++j) {
#pragma unroll
      for (uint32_t k = 0; k < kGroups; ++k) {
        const bool exists = position + 2 * j < p.positions && k * kPointSteps + unit * kHalfUnit < p.inputs;
        x[j][k] =
            exists ? LoadHalfUnit(from + (position + 2 * j) * p.input_stride + k * kPointSteps) : uint4{};
      }
    }
#pragma unroll 1
    for (uint32_t group = 0; group < groups; ++group) {
      const uint32_t channel = first + group * kPointRows + row;
      const uint64_t to = image * p.output_image + uint64_t{channel} * p.output_stride + target;
      const auto exists = [&](uint32_t h) { return target < p.positions && channel + h * 8 < p.outputs; };
      Run added[2] = {};
      if (adds) {
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
          const __half* const at = static_cast<const __half*>(p.tail.added) + to + h * 8 * p.output_stride;
          if (exists(h)) added[h] = *reinterpret_cast<const Run*>(at);
        }
      }
      SumTile sums[kProducts] = {};
#pragma unroll
      for (uint32_t k = 0; k < kGroups; ++k) {
        const uint4* const rows = filters + (group * kGroups + k) * 64 + lane;
        const uint4 upper = rows[0], lower = rows[32];
#pragma unroll
        for (uint32_t j = 0; j < kProducts; ++j) {
          Multiply({{upper.x, lower.x, upper.y, lower.y}}, x[j][k].x, x[j][k].y, &sums[j]);
          Multiply({{upper.z, lower.z, upper.w, lower.w}}, x[j][k].z, x[j][k].w, &sums[j]);
        }
      }
#pragma unroll
      for (uint32_t h = 0; h < 2; ++h) {
        const float number_of_channel = bias[group * kPointRows + row + h * 8];
        Run run;
#pragma unroll
        for (uint32_t j = 0; j < kProducts; ++j) {
          const float* const pair = sums[j].x + 2 * h;
          run.words[j] = FinishPair(p, pair[0] + number_of_channel, pair[1] + number_of_channel, adds,
                                    added[h].words[j]);
        }
        if (exists(h)) *reinterpret_cast<Run*>(p.output + to + h * 8 * p.output_stride) = run;
      }
    }
  }
}

}  // namespace anydml
