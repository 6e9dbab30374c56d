// Steps before and after the product of windows with filters.
#pragma once

#include <algorithm>

#include "ops/convolution/cuda/window_product.cuh"

namespace anydml {

inline constexpr uint32_t kPackThreads = 256;
// Numbers of a filter that a block moves: at least eight channels of all taps.
inline constexpr uint32_t kPackNumbers = 4096;
inline constexpr uint32_t kMostPackedTaps = kPackNumbers / 8;

// Channels-last filters: [group][output channel][phase][tap][padded channel], with zeros for padding and for
// taps that a phase does not have.
struct FilterPacking {
  const void* from = nullptr;
  void* to = nullptr;
  ConvolutionTensor filter;
  uint32_t channels = 0, padded_channels = 0, all_taps = 0;
  FastDivisor output_channels, taps[kMaxSpatial];
  FastDivisor some;          // channels per block
  FastDivisor chunks;        // of a filter's channels
  bool is_in_order = false;  // a filter's channels, with their taps, are contiguous, in units of 16 bytes
  DevicePhases phases;

  FilterPacking() = default;
  FilterPacking(const ConvolutionShape& shape, const DevicePhases& of, uint32_t padded)
      : filter(shape.filter),
        channels(static_cast<uint32_t>(shape.input_channels)),
        padded_channels(padded),
        all_taps(static_cast<uint32_t>(shape.Taps()) * of.all.divisor()),
        output_channels(static_cast<uint32_t>(shape.output_channels)),
        some(std::min(kPackNumbers / all_taps / 8 * 8, padded)),
        chunks((padded + some.divisor() - 1) / some.divisor()),
        phases(of) {
    for (uint32_t d = 0; d < kMaxSpatial; ++d) taps[d] = FastDivisor(shape.windows[d].taps);
    uint64_t stride = 1;
    is_in_order = !of.are_used;
    for (uint32_t d = kMaxSpatial; d-- > 0; stride *= shape.windows[d].taps) {
      is_in_order = is_in_order && (shape.windows[d].taps == 1 || filter.spatial[d] == stride);
    }
    constexpr uint64_t kNumbers = 8;  // per unit; two units for FLOAT32
    const uint64_t distances = filter.offset | (shape.output_channels > 1 ? filter.output_channel : 0) |
                               (shape.outer[1] > 1 ? filter.outer[1] : 0);
    is_in_order = is_in_order && (channels == 1 || filter.channel == stride) && distances % kNumbers == 0;
  }
};

// Channels-last images: [image][position][group][padded channel], with zeros for padding. A thread moves a
// unit of 16 bytes; neighbouring threads have neighbouring positions.
struct ImagePacking {
  const void* from = nullptr;
  void* to = nullptr;
  ConvolutionTensor input;
  uint32_t channels = 0, padded_channels = 0;
  uint32_t units = 0;  // total number
  FastDivisor positions, inputs[kMaxSpatial], units_of_group, groups;

  ImagePacking() = default;
  ImagePacking(const ConvolutionShape& shape, uint32_t padded, uint64_t bytes)
      : input(shape.input),
        channels(static_cast<uint32_t>(shape.input_channels)),
        padded_channels(padded),
        units(static_cast<uint32_t>(bytes / 16)),
        groups(static_cast<uint32_t>(shape.outer[1])) {
    uint32_t pixels = 1;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      inputs[d] = FastDivisor(shape.windows[d].input);
      pixels *= shape.windows[d].input;
    }
    positions = FastDivisor(pixels);
    units_of_group = FastDivisor(static_cast<uint32_t>(units / (shape.outer[0] * shape.outer[1] * pixels)));
  }
};

struct OperandPacking {
  ImagePacking images;
  FilterPacking filter;
  uint32_t image_blocks = 0;  // the other blocks pack the filter
};

template <typename T>
__device__ void PackImages(const ImagePacking& p) {
  constexpr uint32_t kUnit = 16 / sizeof(T);
  const uint32_t number = blockIdx.x * kPackThreads + threadIdx.x;
  if (number >= p.units) return;
  uint32_t position, unit, group, at[kMaxSpatial];
  const uint32_t row = p.units_of_group.Divide(p.positions.Divide(number, &position), &unit);
  const uint32_t image = p.groups.Divide(row, &group);
  T* const to = static_cast<T*>(p.to) +
                ((uint64_t{image} * p.positions.divisor() + position) * p.groups.divisor() + group) *
                    p.padded_channels +
                unit * kUnit;
#pragma unroll
  for (int d = kMaxSpatial - 1; d >= 0; --d) position = p.inputs[d].Divide(position, &at[d]);
  const uint32_t first = unit * kUnit;
  uint64_t offset = p.input.Matrix(image, group) + first * p.input.channel;
#pragma unroll
  for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at[d] * p.input.spatial[d];
  struct alignas(16) {
    T numbers[kUnit];
  } packed;
#pragma unroll
  for (uint32_t c = 0; c < kUnit; ++c) {
    packed.numbers[c] =
        first + c < p.channels ? static_cast<const T*>(p.from)[offset + c * p.input.channel] : T(0.0f);
  }
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&packed);
}

// The index of a phase's tap `at` in the whole filter; false if it has none.
__device__ __forceinline__ bool FindTap(const FilterPacking& p, uint32_t phase,
                                        const uint32_t (&at)[kMaxSpatial], uint64_t* offset) {
  uint32_t numbers[kMaxSpatial];
  p.phases.Split(phase, numbers);
  bool exists = true;
#pragma unroll
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    const DevicePhases::One& one = p.phases.of[d][numbers[d]];
    exists = exists && at[d] < one.taps;
    if (exists) *offset += (one.last_tap - at[d] * p.phases.tap_steps[d]) * p.filter.spatial[d];
  }
  return exists;
}

// A filter's numbers of any layout: channels from `first` on with their taps.
template <typename T, bool kHasPhases>
__device__ void LoadFilter(const FilterPacking& p, const T* from, uint32_t first, uint32_t count,
                           T* numbers) {
  // Loads in flight per thread.
  constexpr uint32_t kAtOnce = 8;
  for (uint32_t i = threadIdx.x; i < count; i += kAtOnce * kPackThreads) {
    T loaded[kAtOnce];
#pragma unroll
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      uint32_t at[kMaxSpatial], left = i + n * kPackThreads;
      bool exists = left < count;
#pragma unroll
      for (int d = kMaxSpatial - 1; d >= 0; --d) left = p.taps[d].Divide(left, &at[d]);
      uint64_t offset = 0;
      if constexpr (kHasPhases) {
        uint32_t phase;
        left = p.phases.all.Divide(left, &phase);
        exists = FindTap(p, phase, at, &offset) && exists;
      } else {
#pragma unroll
        for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at[d] * p.filter.spatial[d];
      }
      offset += (first + left) * p.filter.channel;
      loaded[n] = exists && first + left < p.channels ? from[offset] : T(0.0f);
    }
#pragma unroll
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      if (i + n * kPackThreads < count) numbers[i + n * kPackThreads] = loaded[n];
    }
  }
}

// A block's part of the filters, through shared memory.
template <typename T, bool kHasPhases>
__device__ void PackFilter(const FilterPacking& p, uint32_t block, T* numbers) {
  constexpr uint32_t kUnit = 16 / sizeof(T);
  uint32_t chunk, channel;
  const uint32_t row = p.chunks.Divide(block, &chunk);
  const uint32_t group = p.output_channels.Divide(row, &channel);
  const uint32_t first = chunk * p.some.divisor(), count = p.some.divisor() * p.all_taps;
  const T* const from = static_cast<const T*>(p.from);
  const uint64_t base = p.filter.Matrix(0, group) + channel * p.filter.output_channel;
  if (p.is_in_order) {
    const uint32_t begin = first * p.all_taps, end = p.channels * p.all_taps;
    for (uint32_t i = threadIdx.x * kUnit; i < count; i += kPackThreads * kUnit) {
      struct alignas(16) {
        T numbers[kUnit];
      } unit = {};
      if (begin + i + kUnit <= end) {
        *reinterpret_cast<uint4*>(&unit) = *reinterpret_cast<const uint4*>(from + base + begin + i);
      } else {
#pragma unroll
        for (uint32_t n = 0; n < kUnit; ++n) {
          if (begin + i + n < end) unit.numbers[n] = from[base + begin + i + n];
        }
      }
      *reinterpret_cast<uint4*>(numbers + i) = *reinterpret_cast<const uint4*>(&unit);
    }
  } else {
    LoadFilter<T, kHasPhases>(p, from + base, first, count, numbers);
  }
  __syncthreads();
  T* const to = static_cast<T*>(p.to) + uint64_t{row} * p.all_taps * p.padded_channels + first;
  for (uint32_t i = threadIdx.x; i < count / kUnit; i += kPackThreads) {
    uint32_t c;
    const uint32_t tap = p.some.Divide(i * kUnit, &c);
    if (first + c >= p.padded_channels) continue;
    struct alignas(16) {
      T numbers[kUnit];
    } packed;
#pragma unroll
    for (uint32_t n = 0; n < kUnit; ++n) packed.numbers[n] = numbers[(c + n) * p.all_taps + tap];
    *reinterpret_cast<uint4*>(to + tap * p.padded_channels + c) = *reinterpret_cast<const uint4*>(&packed);
  }
}

template <typename T, bool kHasPhases>
__global__ void __launch_bounds__(kPackThreads) PackOperands(const __grid_constant__ OperandPacking q) {
  __shared__ alignas(16) T numbers[kPackNumbers];
  WaitForPrevious();
  LetNextStart();
  if (blockIdx.x < q.image_blocks) return PackImages<T>(q.images);
  PackFilter<T, kHasPhases>(q.filter, blockIdx.x - q.image_blocks, numbers);
}

// Adds parts in a fixed order: [part][packed output].
struct PartSums {
  const float* parts;
  const void* bias;
  void* output;
  uint64_t elements, bias_stride;
  SumLimits limits;
  uint32_t splits;
  bool channels_last;  // of the packed output
  bool is_half_target;
  FastDivisor all_channels, group_channels, positions, outputs[kMaxSpatial];
  ConvolutionTensor target;
};

template <typename T>
__global__ void __launch_bounds__(kPackThreads) AddWindowParts(const __grid_constant__ PartSums p) {
  WaitForPrevious();
  const uint64_t i = uint64_t{blockIdx.x} * kPackThreads + threadIdx.x;
  if (i >= p.elements) return;
  float sum = 0;
#pragma unroll 4
  for (uint32_t split = 0; split < p.splits; ++split) sum += p.parts[split * p.elements + i];
  uint32_t channel, position, image, at[kMaxSpatial], c;
  if (p.channels_last) {
    image = p.positions.Divide(p.all_channels.Divide(static_cast<uint32_t>(i), &channel), &position);
  } else {
    image = p.all_channels.Divide(p.positions.Divide(static_cast<uint32_t>(i), &position), &channel);
  }
  if (p.bias != nullptr) sum += static_cast<float>(static_cast<const T*>(p.bias)[channel * p.bias_stride]);
#pragma unroll
  for (int d = kMaxSpatial - 1; d >= 0; --d) position = p.outputs[d].Divide(position, &at[d]);
  const uint32_t group = p.group_channels.Divide(channel, &c);
  uint64_t offset = p.target.Matrix(image, group) + c * p.target.channel;
#pragma unroll
  for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at[d] * p.target.spatial[d];
  sum = p.limits.Of(sum);
  if (p.is_half_target) {
    static_cast<__half*>(p.output)[offset] = __float2half_rn(sum);
  } else {
    static_cast<float*>(p.output)[offset] = sum;
  }
}

}  // namespace anydml
