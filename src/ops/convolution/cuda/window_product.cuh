// A convolution as a product of windows with filters, both channels-last: a block has a tile of positions
// (rows) by output channels (columns) and loops over taps and channels (steps). Both operands go through
// shared memory in units of 16 bytes.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <span>
#include <type_traits>

#include "ops/convolution/activation.h"
#include "ops/convolution/cuda/device_phases.cuh"
#include "ops/convolution/problem.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/tensor_cores.cuh"
#include "ops/device/cuda/units.cuh"
#include "ops/device/nest.h"

namespace anydml {

// From shared memory; `address` is a multiple of 16.
__device__ __forceinline__ float4 LoadFourFloats(uint32_t address) {
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

// Taps per dimension: a bit for each says whether it is inside the image.
inline constexpr uint32_t kMostWindowTaps = 10;

struct WindowProduct {
  static constexpr bool kIsGeneral = false;
  const void* input;
  const void* filter;
  const void* bias;  // null: none
  void* output;

  uint32_t columns;   // output channels per group
  uint32_t channels;  // input channels per group
  uint32_t steps;     // taps times padded channels
  FastDivisor padded_channels;
  uint32_t steps_per_split;
  FastDivisor column_tiles, row_tiles, groups;
  FastDivisor cluster;  // blocks that share a tile, each with a part of the steps; 1: another kernel adds the
                        // parts
  FastDivisor tiles_per_part;  // row tiles per rows_per_part rows: those of an image, or all
  uint32_t rows_per_part;

  // Offsets that are read are below 2^31; intermediate ones may wrap.
  ConvolutionWindow windows[kMaxSpatial];
  FastDivisor positions, outputs[kMaxSpatial], taps[kMaxSpatial];
  uint32_t image_stride, spatial_strides[kMaxSpatial], tap_strides[kMaxSpatial];
  uint64_t input_group;
  uint32_t filter_row;
  uint64_t filter_group;

  ConvolutionTensor target;  // the output, or the place of partial sums
  uint64_t split_stride;     // of the target; 0 if a cluster adds parts
  uint64_t bias_stride;
  SumLimits limits;
  uint32_t unit_bytes;      // bytes per store
  bool is_half_target;      // otherwise FLOAT32
  bool stores_by_channels;  // channels are contiguous in the target, not positions
};

// ConvolutionTail, on the device.
struct WindowTail {
  const void* numbers[4];  // per channel: mean, variance, scale, bias; null: no normalisation
  uint64_t strides[4];
  float epsilon;
  SumLimits limits;
  const void* added;  // null: none; laid out as the output
  SumLimits sum_limits;
};

// Additional features that few products need, in kernels of their own, because they would cost the others
// registers and time.
struct GeneralProduct : WindowProduct {
  static constexpr bool kIsGeneral = true;
  // For a backward convolution: each block works on one phase. `windows` then have the whole output and its
  // strides, `outputs` and `taps` the largest numbers of any phase.
  DevicePhases phases;
  uint32_t filter_phase;
  WindowTail tail;
};

// How a kernel cuts the product.
struct WindowTile {
  uint32_t rows, columns;
  uint32_t steps;  // at a time
  uint32_t threads;
  uint32_t shared_bytes;
  double rate;  // multiplications of a multiprocessor per cycle
  void (*kernel)(WindowProduct);
  void (*general)(GeneralProduct);
  uint32_t blocks = kMostBlocks;  // most per multiprocessor at a time

  static constexpr uint32_t kMostBlocks = 32;
};

std::span<const WindowTile> HalfWindowTiles();
std::span<const WindowTile> FloatWindowTiles();

// The target of rows that do not exist in this phase but in another one.
inline constexpr uint64_t kNowhere = ~uint64_t{0};

// What a block needs besides the tiles of operands, at the beginning and the end of its work.
template <uint32_t kRows, uint32_t kColumns>
struct WindowTable {
  uint2 windows[kRows];     // the offset of tap 0, which may be outside the image, and a bit for each tap
                            // inside
  uint64_t targets[kRows];  // of channel 0, or kNowhere
  float bias[kColumns];
};

template <uint32_t kRows, uint32_t kColumns>
struct GeneralTable : WindowTable<kRows, kColumns> {
  float mean[kColumns], factor[kColumns], shift[kColumns];  // of the tail's normalisation
};

template <class Product, uint32_t kRows, uint32_t kColumns>
using TableOf =
    std::conditional_t<Product::kIsGeneral, GeneralTable<kRows, kColumns>, WindowTable<kRows, kColumns>>;

struct WindowPlace {
  uint32_t row, column, group, split, phase = 0;
  uint32_t end;  // rows from here on do not belong to the tile

  template <class Product>
  __device__ WindowPlace(const Product& p, uint32_t rows, uint32_t columns) {
    uint32_t rank;
    uint32_t number = p.cluster.Divide(blockIdx.x, &rank);
    number = p.column_tiles.Divide(number, &column);
    if constexpr (Product::kIsGeneral) number = p.phases.all.Divide(number, &phase);
    number = p.row_tiles.Divide(number, &row);
    split = p.groups.Divide(number, &group) + rank;
    const uint32_t part = p.tiles_per_part.Divide(row, &row);
    row = part * p.rows_per_part + row * rows;
    end = (part + 1) * p.rows_per_part;
    column *= columns;
  }
};

__device__ inline uint2 FindWindow(const WindowProduct& p, uint32_t image,
                                   const uint32_t (&at)[kMaxSpatial]) {
  uint32_t offset = image * p.image_stride, inside = 0;
#pragma unroll
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    const ConvolutionWindow& window = p.windows[d];
    offset += (at[d] * window.stride - window.start_padding) * p.spatial_strides[d];
    for (uint32_t tap = 0; tap < window.taps; ++tap) {
      if (InputIndex(window, false, at[d], tap) >= 0) inside |= 1u << (d * kMostWindowTaps + tap);
    }
  }
  return {offset, inside};
}

// The same for a phase; `at` becomes the position in the whole output.
__device__ inline uint2 FindPhaseWindow(const GeneralProduct& p, uint32_t image, uint32_t phase,
                                        uint32_t (&at)[kMaxSpatial]) {
  uint32_t offset = image * p.image_stride, inside = 0, numbers[kMaxSpatial];
  p.phases.Split(phase, numbers);
#pragma unroll
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    const ConvolutionWindow& window = p.windows[d];
    const DevicePhases::One& one = p.phases.of[d][numbers[d]];
    int32_t index = static_cast<int32_t>(at[d]) - one.start_padding;
    offset += static_cast<uint32_t>(index) * p.spatial_strides[d];
    for (uint32_t tap = 0; tap < one.taps; ++tap, index += static_cast<int32_t>(window.dilation)) {
      if (index >= 0 && index < static_cast<int32_t>(window.input)) {
        inside |= 1u << (d * kMostWindowTaps + tap);
      }
    }
    at[d] = at[d] * window.stride + numbers[d];
  }
  return {offset, inside};
}

template <uint32_t kRows, uint32_t kColumns, class Product>
__device__ void FillTable(const Product& p, const WindowPlace& place, WindowTable<kRows, kColumns>* table) {
  for (uint32_t r = threadIdx.x; r < kRows; r += blockDim.x) {
    uint2 window = {0, 0};
    uint64_t target = 0;
    if (place.row + r < place.end) {
      uint32_t position, at[kMaxSpatial];
      const uint32_t image = p.positions.Divide(place.row + r, &position);
#pragma unroll
      for (int d = kMaxSpatial - 1; d >= 0; --d) position = p.outputs[d].Divide(position, &at[d]);
      if constexpr (Product::kIsGeneral) {
        window = p.phases.are_used ? FindPhaseWindow(p, image, place.phase, at) : FindWindow(p, image, at);
      } else {
        window = FindWindow(p, image, at);
      }
      target = p.target.offset + image * p.target.outer[0] + place.group * p.target.outer[1] +
               place.split * p.split_stride;
#pragma unroll
      for (uint32_t d = 0; d < kMaxSpatial; ++d) target += at[d] * p.target.spatial[d];
      if constexpr (Product::kIsGeneral) {
#pragma unroll
        for (uint32_t d = 0; d < kMaxSpatial; ++d) {
          if (at[d] >= p.windows[d].output) target = kNowhere;
        }
      }
    }
    table->windows[r] = window;
    table->targets[r] = target;
  }
}

// The rows of a tile that come from filters. Rows in shared memory have kUnits units of 16 bytes.
template <typename T, class Shared, uint32_t kColumns, uint32_t kThreads>
class FilterCopier {
  static constexpr uint32_t kUnits = Shared::kUnits, kUnit = 16 / sizeof(T), kApart = kThreads / kUnits;
  static_assert(kColumns % kApart == 0 && kThreads % kUnits == 0);

 public:
  template <class Product>
  __device__ FilterCopier(const Product& p, const WindowPlace& place)
      : filter_(static_cast<const T*>(p.filter) + place.group * p.filter_group),
        step_(place.split * p.steps_per_split + threadIdx.x % kUnits * kUnit),
        column_(place.column + threadIdx.x / kUnits) {
    if constexpr (Product::kIsGeneral) filter_ += place.phase * p.filter_phase;
  }

  __device__ __forceinline__ void Start(const WindowProduct& p, Shared to) {
    const uint32_t row = threadIdx.x / kUnits, unit = threadIdx.x % kUnits;
    uint32_t offset = column_ * p.filter_row + step_;
#pragma unroll
    for (uint32_t i = 0; i < kColumns / kApart; ++i, offset += kApart * p.filter_row) {
      const bool exists = column_ + i * kApart < p.columns && step_ < p.steps;
      StartCopy(to.At(row + i * kApart, unit), filter_ + (exists ? offset : 0), exists);
    }
    step_ += kUnits * kUnit;
  }

 private:
  const T* filter_;
  uint32_t step_, column_;
};

// The rows of a tile that are windows.
template <typename T, class Shared, uint32_t kRows, uint32_t kThreads>
class WindowCopier {
  static constexpr uint32_t kUnits = Shared::kUnits, kUnit = 16 / sizeof(T), kApart = kThreads / kUnits;
  static_assert(kRows % kApart == 0 && kThreads % kUnits == 0);

 public:
  __device__ WindowCopier(const WindowProduct& p, const WindowPlace& place)
      : input_(static_cast<const T*>(p.input) + place.group * p.input_group) {
    const uint32_t step = place.split * p.steps_per_split + threadIdx.x % kUnits * kUnit;
    uint32_t tap = p.padded_channels.Divide(step, &channel_);
#pragma unroll
    for (int d = kMaxSpatial - 1; d > 0; --d) tap = p.taps[d].Divide(tap, &taps_[d]);
    taps_[0] = tap;
  }

  __device__ __forceinline__ void Start(const WindowProduct& p, const uint2* windows, Shared to) {
    const uint32_t row = threadIdx.x / kUnits, unit = threadIdx.x % kUnits;
    uint32_t wanted = 0, offset = channel_;
#pragma unroll
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      wanted |= 1u << (d * kMostWindowTaps + taps_[d]);
      offset += taps_[d] * p.tap_strides[d];
    }
    const uint32_t left = p.channels - channel_;
    const uint32_t bytes = taps_[0] < p.windows[0].taps ? (left < kUnit ? left : kUnit) * sizeof(T) : 0;
#pragma unroll
    for (uint32_t i = 0; i < kRows / kApart; ++i) {
      const uint2 window = windows[row + i * kApart];
      const bool inside = (window.y & wanted) == wanted && bytes != 0;
      StartCopyOf(inside ? bytes : 0, to.At(row + i * kApart, unit),
                  input_ + (inside ? window.x + offset : 0));
    }
    Advance(p);
  }

 private:
  __device__ __forceinline__ void Advance(const WindowProduct& p) {
    channel_ += kUnits * kUnit;
    while (channel_ >= p.padded_channels.divisor()) {
      channel_ -= p.padded_channels.divisor();
      if (++taps_[2] < p.windows[2].taps) continue;
      taps_[2] = 0;
      if (++taps_[1] < p.windows[1].taps) continue;
      taps_[1] = 0;
      ++taps_[0];
    }
  }

  const T* input_;
  uint32_t channel_, taps_[kMaxSpatial];
};

// Loops over the steps: `multiply(rows, columns)` gets one tile of operands after the other; kStages of them
// are in shared memory at a time.
template <typename T, class Shared, uint32_t kRows, uint32_t kColumns, uint32_t kThreads, uint32_t kStages,
          class Product, class MultiplyTiles>
__device__ __forceinline__ void ForWindowTiles(const Product& p, const WindowPlace& place,
                                               const uint2* windows, uint32_t shared,
                                               const MultiplyTiles& multiply) {
  constexpr uint32_t kRowBytes = Shared::kUnits * 16, kSteps = kRowBytes / sizeof(T);
  constexpr uint32_t kStageBytes = (kRows + kColumns) * kRowBytes;
  const auto rows_of = [&](uint32_t stage) { return Shared{shared + stage * kStageBytes}; };
  const auto columns_of = [&](uint32_t stage) {
    return Shared{shared + stage * kStageBytes + kRows * kRowBytes};
  };
  WindowCopier<T, Shared, kRows, kThreads> windows_copier(p, place);
  FilterCopier<T, Shared, kColumns, kThreads> filter_copier(p, place);
  const auto start = [&](uint32_t stage) {
    windows_copier.Start(p, windows, rows_of(stage));
    filter_copier.Start(p, columns_of(stage));
  };
  const uint32_t begin = place.split * p.steps_per_split;
  const uint32_t left = p.steps - begin;
  const uint32_t tiles = ((left < p.steps_per_split ? left : p.steps_per_split) + kSteps - 1) / kSteps;
#pragma unroll
  for (uint32_t stage = 0; stage + 1 < kStages; ++stage) {
    if (stage < tiles) start(stage);
    MarkCopies();
  }
  uint32_t used = 0, filled = kStages - 1;
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    WaitForCopies<kStages - 2>();
    __syncthreads();  // the tile has arrived, and the previous one is no longer used
    if (tile + kStages - 1 < tiles) start(filled);
    MarkCopies();
    multiply(rows_of(used), columns_of(used));
    used = used + 1 == kStages ? 0 : used + 1;
    filled = filled + 1 == kStages ? 0 : filled + 1;
  }
  EndCopies();
  __syncthreads();
}

}  // namespace anydml
