// Bandwidth-bound FLOAT16 convolutions of one tap with few channels. A warp has some positions with all input
// channels in registers, multiplies them with filters in shared memory on tensor cores, and stores units of
// 16 bytes. The assignment of channels to steps of a product, and of positions or channels to its rows and
// columns, is arbitrary as long as both factors agree: it is chosen so that the numbers of a loaded unit
// belong to one thread.
#pragma once

#include "ops/convolution/cuda/half_units.cuh"
#include "ops/convolution/cuda/store_sums.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/tensor_cores.cuh"
#include "ops/device/nest.h"

namespace anydml {

// Input channels are processed by 32: each of four adjacent threads has eight of them.
inline constexpr uint32_t kPointSteps = 32;
inline constexpr uint32_t kPointThreads = 128;  // most per block

struct PointProduct {
  const __half* input;
  const __half* filter;
  const __half* bias;  // null: none
  __half* output;
  uint32_t inputs, outputs;  // channels
  uint32_t positions;        // per image
  uint32_t tiles;
  FastDivisor tiles_per_image;
  FastDivisor parts;       // of the output's channels; a block has one
  uint32_t part_groups;    // of channels, each as many as a product has columns or rows
  uint32_t stored_groups;  // number that is stored together
  // Between positions if channels are contiguous, otherwise between channels; and between images.
  uint32_t input_stride, output_stride, filter_row;
  uint64_t input_image, output_image;
  uint64_t bias_stride;
  SumLimits limits;
  WindowTail tail;  // no normalisation
};

// The work of a warp: every `step`-th tile, and groups of `kChannels` output channels.
struct PointShare {
  uint32_t tile, step;     // the first tile, and the distance to the next
  uint32_t first, groups;  // the first channel, and the number of groups from there on
};

template <uint32_t kChannels>
__device__ __forceinline__ PointShare ShareOfPoints(const PointProduct& p) {
  uint32_t part;
  const uint32_t warps = blockDim.x / 32;
  const uint32_t tile = p.parts.Divide(blockIdx.x, &part) * warps + threadIdx.x / 32;
  const uint32_t first = part * p.part_groups * kChannels;
  return {tile, gridDim.x / p.parts.divisor() * warps, first,
          min(p.part_groups, (p.outputs - first + kChannels - 1) / kChannels)};
}

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

// Adds two numbers to two rounded sums.
__device__ __forceinline__ uint32_t AddPair(const PointProduct& p, uint32_t word, uint32_t added) {
  auto* const halves = reinterpret_cast<__half*>(&word);
  const auto* const others = reinterpret_cast<const __half*>(&added);
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i) halves[i] = AddToSum(p.tail, halves[i], others[i]);
  return word;
}

__device__ __forceinline__ uint32_t RoundPair(const PointProduct& p, float low, float high) {
  return PackHalves(LimitHalf(p.limits, low), LimitHalf(p.limits, high));
}

// To contiguous channels: rows of the products are 16 positions; columns are channels, 32 at a time, of which
// a thread has eight consecutive ones. Results go through the warp's own shared memory, so that whole lines
// are stored: pieces of 64 bytes took three times as long.
inline constexpr uint32_t kPointColumns = 32, kPointPositions = 16, kMostStoredGroups = 5;

// Bytes between positions in shared memory, chosen so that neighbours are in different banks.
__host__ __device__ constexpr uint32_t PointPitch(uint32_t groups) {
  return (groups * 64 + 63) / 128 * 128 + 64;
}

// The steps of the products for positions from `position` on. With planes, a thread's rows are two
// neighbours.
template <bool kPlanes, uint32_t kGroups>
__device__ __forceinline__ void LoadPoints(const PointProduct& p, uint32_t image, uint32_t position,
                                           LeftTile (&left)[kGroups][2]) {
  const uint32_t row = threadIdx.x % 32 / 4, unit = threadIdx.x % 4;
  const __half* const from = p.input + image * p.input_image;
#pragma unroll
  for (uint32_t k = 0; k < kGroups; ++k) {
    const uint32_t channel = k * kPointSteps + unit * kHalfUnit;
    if constexpr (kPlanes) {
      uint32_t pairs[kHalfUnit];  // of two positions
      const uint32_t at = position + 2 * row;
      const bool exists = channel < p.inputs && at < p.positions;
#pragma unroll
      for (uint32_t i = 0; i < kHalfUnit; ++i) {
        const __half* const pair = from + (channel + i) * p.input_stride + at;
        pairs[i] = exists ? *reinterpret_cast<const uint32_t*>(pair) : 0;
      }
#pragma unroll
      for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t first = i / 2 * 2;
        left[k][i / 4].registers[i % 4] =
            __byte_perm(pairs[first], pairs[first + 1], i % 2 == 0 ? 0x5410 : 0x7632);
      }
    } else {
#pragma unroll
      for (uint32_t lower = 0; lower < 2; ++lower) {
        const uint32_t at = position + row + 8 * lower;
        const bool exists = channel < p.inputs && at < p.positions;
        const uint4 x = exists ? LoadHalfUnit(from + at * p.input_stride + channel) : uint4{};
        left[k][0].registers[lower] = x.x;
        left[k][0].registers[2 + lower] = x.y;
        left[k][1].registers[lower] = x.z;
        left[k][1].registers[2 + lower] = x.w;
      }
    }
  }
}

// Copies results of a warp's positions and of groups from `channel` on, from its shared memory to the output.
template <bool kPlanes>
__device__ __forceinline__ void StorePoints(const PointProduct& p, uint32_t image, uint32_t position,
                                            uint32_t channel, uint32_t groups, uint32_t pitch,
                                            const unsigned char* results) {
  const uint32_t units = min(groups * 4, (p.outputs - channel) / kHalfUnit);
  const uint32_t inverse = (65536 + units - 1) / units;  // for up to 16 * 20 units
  const uint32_t count = min(kPointPositions, p.positions - position) * units;
  for (uint32_t i = threadIdx.x % 32; i < count; i += 32) {
    const uint32_t point = i * inverse >> 16, unit = i - point * units;
    const uint32_t slot = kPlanes ? point / 2 + point % 2 * 8 : point;
    uint4 result = *reinterpret_cast<const uint4*>(results + slot * pitch + unit * 16);
    const uint64_t offset =
        image * p.output_image + uint64_t{position + point} * p.output_stride + channel + unit * kHalfUnit;
    if (p.tail.added != nullptr) {
      const uint4 added = LoadHalfUnit(static_cast<const __half*>(p.tail.added) + offset);
      result = {AddPair(p, result.x, added.x), AddPair(p, result.y, added.y), AddPair(p, result.z, added.z),
                AddPair(p, result.w, added.w)};
    }
    *reinterpret_cast<uint4*>(p.output + offset) = result;
  }
}

template <bool kPlanes, uint32_t kGroups>
__global__ void __launch_bounds__(kPointThreads, 4) PointsToChannels(const __grid_constant__ PointProduct p) {
  extern __shared__ __align__(16) unsigned char shared[];
  WaitForPrevious();
  LetNextStart();
  const uint32_t lane = threadIdx.x % 32, row = lane / 4, unit = lane % 4;
  const PointShare share = ShareOfPoints<kPointColumns>(p);
  const uint32_t first = share.first, groups = share.groups;
  const uint32_t pitch = PointPitch(p.stored_groups);
  auto* const filters = reinterpret_cast<uint4*>(shared);  // [group][steps][product][lane]
  auto* const bias = reinterpret_cast<float*>(filters + p.part_groups * kGroups * 128);
  unsigned char* const results = reinterpret_cast<unsigned char*>(bias + p.part_groups * kPointColumns) +
                                 threadIdx.x / 32 * (kPointPositions * pitch);
  for (uint32_t i = threadIdx.x; i < groups * kGroups * 128; i += blockDim.x) {
    const uint32_t column = i / 4 % 8, product = i / 32 % 4, steps = i / 128 % kGroups,
                   group = i / 128 / kGroups;
    filters[i] = LoadPointFilter(p, first + group * kPointColumns + column / 2 * 8 + 2 * product + column % 2,
                                 steps * kPointSteps + i % 4 * kHalfUnit);
  }
  PutPointBias(p, first, groups * kPointColumns, bias);
  __syncthreads();

  for (uint32_t tile = share.tile; tile < p.tiles; tile += share.step) {
    uint32_t position;
    const uint32_t image = p.tiles_per_image.Divide(tile, &position);
    position *= kPointPositions;
    LeftTile left[kGroups][2];
    LoadPoints<kPlanes>(p, image, position, left);
    for (uint32_t begin = 0; begin < groups; begin += p.stored_groups) {
      const uint32_t end = min(begin + p.stored_groups, groups);
#pragma unroll 1
      for (uint32_t group = begin; group < end; ++group) {
        SumTile sums[4] = {};
#pragma unroll
        for (uint32_t k = 0; k < kGroups; ++k) {
#pragma unroll
          for (uint32_t j = 0; j < 4; ++j) {
            const uint4 right = filters[((group * kGroups + k) * 4 + j) * 32 + lane];
            Multiply(left[k][0], right.x, right.y, &sums[j]);
            Multiply(left[k][1], right.z, right.w, &sums[j]);
          }
        }
        const float* const biases = bias + group * kPointColumns + unit * kHalfUnit;
        const float4 low = *reinterpret_cast<const float4*>(biases),
                     high = *reinterpret_cast<const float4*>(biases + 4);
        const float numbers[kHalfUnit] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (uint32_t lower = 0; lower < 2; ++lower) {
          uint32_t words[4];
#pragma unroll
          for (uint32_t j = 0; j < 4; ++j) {
            const float* const pair = sums[j].x + 2 * lower;
            words[j] = RoundPair(p, pair[0] + numbers[2 * j], pair[1] + numbers[2 * j + 1]);
          }
          unsigned char* const to = results + (row + 8 * lower) * pitch + (group - begin) * 64 + unit * 16;
          *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
        }
      }
      __syncwarp();
      StorePoints<kPlanes>(p, image, position, first + begin * kPointColumns, end - begin, pitch, results);
      __syncwarp();
    }
  }
}

// To planes: rows of the products are channels, 16 at a time; columns are positions, of which a thread has 2
// * kProducts consecutive ones.
inline constexpr uint32_t kPointRows = 16;

template <uint32_t kProducts>
struct alignas(kProducts * 4) PointRun {
  uint32_t words[kProducts];
};

// The steps of the products for positions from `begin` on. With planes, two threads read the same runs; one
// takes the even positions, the other the odd ones.
template <bool kPlanes, uint32_t kGroups, uint32_t kProducts>
__device__ __forceinline__ void LoadPointColumns(const PointProduct& p, uint32_t image, uint32_t begin,
                                                 uint4 (&x)[kProducts][kGroups]) {
  using Run = PointRun<kProducts>;
  const uint32_t row = threadIdx.x % 32 / 4, unit = threadIdx.x % 4, odd = row % 2;
  const __half* const from = p.input + image * p.input_image;
  const uint32_t position = begin + row / 2 * (2 * kProducts);
#pragma unroll
  for (uint32_t k = 0; k < kGroups; ++k) {
    const uint32_t channel = k * kPointSteps + unit * kHalfUnit;
    if constexpr (kPlanes) {
      Run runs[kHalfUnit] = {};
      const bool exists = channel < p.inputs && position < p.positions;
#pragma unroll
      for (uint32_t i = 0; i < kHalfUnit; ++i) {
        if (exists) runs[i] = *reinterpret_cast<const Run*>(from + (channel + i) * p.input_stride + position);
      }
#pragma unroll
      for (uint32_t j = 0; j < kProducts; ++j) {
        const auto pair = [&](uint32_t i) {
          return __byte_perm(runs[i].words[j], runs[i + 1].words[j], odd == 0 ? 0x5410 : 0x7632);
        };
        x[j][k] = {pair(0), pair(2), pair(4), pair(6)};
      }
    } else {
#pragma unroll
      for (uint32_t j = 0; j < kProducts; ++j) {
        const uint32_t at = position + odd + 2 * j;
        const bool exists = channel < p.inputs && at < p.positions;
        x[j][k] = exists ? LoadHalfUnit(from + at * p.input_stride + channel) : uint4{};
      }
    }
  }
}

template <bool kPlanes, uint32_t kGroups, uint32_t kProducts>
__global__ void __launch_bounds__(kPointThreads, 3) PointsToPlanes(const __grid_constant__ PointProduct p) {
  constexpr uint32_t kRun = 2 * kProducts;
  using Run = PointRun<kProducts>;
  extern __shared__ __align__(16) unsigned char shared[];
  WaitForPrevious();
  LetNextStart();
  const uint32_t lane = threadIdx.x % 32, row = lane / 4, unit = lane % 4;
  const PointShare share = ShareOfPoints<kPointRows>(p);
  const uint32_t first = share.first, groups = share.groups;
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
  for (uint32_t tile = share.tile; tile < p.tiles; tile += share.step) {
    uint32_t begin;
    const uint32_t image = p.tiles_per_image.Divide(tile, &begin);
    begin *= 4 * kRun;
    const uint32_t target = begin + unit * kRun;
    uint4 x[kProducts][kGroups];
    LoadPointColumns<kPlanes>(p, image, begin, x);
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
          run.words[j] = RoundPair(p, pair[0] + number_of_channel, pair[1] + number_of_channel);
          if (adds) run.words[j] = AddPair(p, run.words[j], added[h].words[j]);
        }
        if (exists(h)) *reinterpret_cast<Run*>(p.output + to + h * 8 * p.output_stride) = run;
      }
    }
  }
}

}  // namespace anydml
