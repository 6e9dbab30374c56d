// FLOAT32 products of windows with filters, by FFMA instructions, whose tiles in shared memory have a row per
// step. One reads three registers, and each of the two register banks (even and odd) delivers one per cycle.
// So it takes a single cycle only if one operand is reused from the previous instruction and the other two
// are in different banks. A step's rows and columns are loaded by fours, which alternate between the banks;
// the compiler then finds banks for the sums, and an order in which nearly all multiplications take one
// cycle.
#pragma once

#include "ops/convolution/cuda/store_sums.cuh"

namespace anydml::step_windows {

// Filters are [group][step][padded column].
struct StepProduct : WindowProduct {
  uint32_t channel_stride;  // of the input
};

__device__ __forceinline__ float Part(const float4& x, uint32_t i) {
  return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

// Starts to copy a number to shared memory; if it is `outside`, nothing is read and it becomes 0.
__device__ __forceinline__ void StartNumber(uint32_t to, const float* from, bool outside) {
  asm volatile(
      "{\n .reg .pred outside;\n setp.ne.u32 outside, %2, 0;\n"
      " cp.async.ca.shared.global [%0], [%1], 4, outside;\n}" ::"r"(to),
      "l"(__cvta_generic_to_global(from)), "r"(uint32_t{outside})
      : "memory");
}

// Copies windows, by single numbers, and filters, by units of 16 bytes, to shared memory. A tile's steps are
// channels of one tap. A warp's threads have neighbouring positions if channels are not contiguous, otherwise
// neighbouring channels.
template <bool kIsApart, uint32_t kRows, uint32_t kColumns, uint32_t kSteps, uint32_t kThreads,
          uint32_t kPitch>
class StepCopier {
  static constexpr uint32_t kChannelLanes = kIsApart ? kThreads / 32 : 32,
                            kRowLanes = kThreads / kChannelLanes;
  static constexpr uint32_t kOfRows = kRows / kRowLanes, kOfChannels = kSteps / kChannelLanes;
  static constexpr uint32_t kUnits = kColumns / 4, kStepLanes = kThreads / kUnits;
  static_assert(kRows % kRowLanes == 0 && kSteps % kChannelLanes == 0 && kSteps % kStepLanes == 0);

 public:
  __device__ __forceinline__ StepCopier(const StepProduct& p, const WindowPlace& place,
                                        const uint2* windows) {
    const uint32_t row = kIsApart ? threadIdx.x % kRowLanes : threadIdx.x / kChannelLanes,
                   channel = kIsApart ? threadIdx.x / kRowLanes : threadIdx.x % kChannelLanes;
    const uint32_t step = place.split * p.steps_per_split;
    stride_ = kIsApart ? p.channel_stride : 1;
    input_ = static_cast<const float*>(p.input) + place.group * p.input_group;
    uint32_t tap = p.padded_channels.Divide(step, &channel_);
#pragma unroll
    for (int d = kMaxSpatial - 1; d > 0; --d) tap = p.taps[d].Divide(tap, &taps_[d]);
    taps_[0] = tap;
#pragma unroll
    for (uint32_t i = 0; i < kOfRows; ++i) {
      windows_[i] = windows[row + i * kRowLanes];
      windows_[i].x += channel * stride_;
    }
    to_row_ = (channel * kPitch + row) * sizeof(float);
    filter_ = static_cast<const float*>(p.filter) + place.group * p.filter_group +
              uint64_t{step + threadIdx.x / kUnits} * p.filter_row + place.column + threadIdx.x % kUnits * 4;
    filter_lanes_ = uint64_t{kStepLanes} * p.filter_row;
  }

  // Starts the next steps.
  __device__ __forceinline__ void Start(const StepProduct& p, uint32_t rows, uint32_t columns) {
    uint32_t wanted = 0, offset = channel_ * stride_;
#pragma unroll
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      wanted |= 1u << (d * kMostWindowTaps + taps_[d]);
      offset += taps_[d] * p.tap_strides[d];
    }
#pragma unroll
    for (uint32_t i = 0; i < kOfRows; ++i) {
      const bool outside = (~windows_[i].y & wanted) != 0;
      const float* from = input_ + (windows_[i].x + offset);
#pragma unroll
      for (uint32_t m = 0; m < kOfChannels; ++m, from += kChannelLanes * stride_) {
        StartNumber(rows + to_row_ + (m * kChannelLanes * kPitch + i * kRowLanes) * 4, from, outside);
      }
    }
#pragma unroll
    for (uint32_t m = 0; m < kSteps / kStepLanes; ++m, filter_ += filter_lanes_) {
      StartCopy(columns + (m * kThreads + threadIdx.x) * 16, filter_, true);
    }
    Advance(p);
  }

 private:
  __device__ __forceinline__ void Advance(const StepProduct& p) {
    channel_ += kSteps;
    if (channel_ < p.padded_channels.divisor()) return;
    channel_ = 0;
    if (++taps_[2] < p.windows[2].taps) return;
    taps_[2] = 0;
    if (++taps_[1] < p.windows[1].taps) return;
    taps_[1] = 0;
    ++taps_[0];
  }

  const float *input_, *filter_;
  uint64_t filter_lanes_;
  uint32_t stride_, channel_, taps_[kMaxSpatial], to_row_;
  uint2 windows_[kOfRows];
};

// A thread's rows and columns of a step: groups of four, spaced by the number of threads in that direction.
template <uint32_t kDown, uint32_t kAcross, uint32_t kHigh, uint32_t kWide>
struct StepNumbers {
  float4 rows[kDown / 4], columns[kAcross / 4];

  __device__ __forceinline__ void LoadFrom(uint32_t row, uint32_t column) {
#pragma unroll
    for (uint32_t i = 0; i < kDown / 4; ++i) rows[i] = LoadFourFloats(row + i * kHigh * 16);
#pragma unroll
    for (uint32_t j = 0; j < kAcross / 4; ++j) columns[j] = LoadFourFloats(column + j * kWide * 16);
  }

  __device__ __forceinline__ void Multiply(float (&sums)[kDown][kAcross]) const {
#pragma unroll
    for (uint32_t j = 0; j < kAcross; ++j) {
#pragma unroll
      for (uint32_t n = 0; n < kDown; ++n) {
        const uint32_t i = j % 2 == 0 ? n : kDown - 1 - n;  // the next column begins with the same row, so
                                                            // that its operand is reused
        sums[i][j] = __fmaf_rn(Part(columns[j / 4], j % 4), Part(rows[i / 4], i % 4), sums[i][j]);
      }
    }
  }
};

// Multiplies a whole tile: numbers are loaded while previous ones are used. Four steps at a time, because the
// compiler's code for two or eight is slower.
template <uint32_t kSteps, uint32_t kRowBytes, uint32_t kColumnBytes, class Numbers, uint32_t kDown,
          uint32_t kAcross>
__device__ __forceinline__ void MultiplySteps(uint32_t row, uint32_t column, float (&sums)[kDown][kAcross]) {
  Numbers now, next;
  now.LoadFrom(row, column);
#pragma unroll 1
  for (uint32_t step = 0; step < kSteps; step += 4, row += 4 * kRowBytes, column += 4 * kColumnBytes) {
    next.LoadFrom(row + kRowBytes, column + kColumnBytes);
    now.Multiply(sums);
    now.LoadFrom(row + 2 * kRowBytes, column + 2 * kColumnBytes);
    next.Multiply(sums);
    next.LoadFrom(row + 3 * kRowBytes, column + 3 * kColumnBytes);
    now.Multiply(sums);
    now.LoadFrom(row + 4 * kRowBytes, column + 4 * kColumnBytes);  // at the end these are not used
    next.Multiply(sums);
  }
}

template <uint32_t kRows, uint32_t kColumns, uint32_t kSteps, uint32_t kStages>
struct StepMemory {
  // Eight neighbouring steps are in different banks.
  static constexpr uint32_t kPitch = kRows + 4, kRowBytes = kPitch * 4, kColumnBytes = kColumns * 4;
  static constexpr uint32_t kStageBytes = kSteps * (kRowBytes + kColumnBytes);
  // The last load reads beyond the last step.
  static constexpr uint32_t kTileBytes = kStages * kStageBytes + kColumnBytes;
  static constexpr uint32_t kSumBytes = WindowSumsBytes<kRows, kColumns>();
  static constexpr uint32_t kBytes = kTileBytes > kSumBytes ? kTileBytes : kSumBytes;
};

// A thread has kDown x kAcross sums. Two threads have the same ones, each for half of a tile's steps: they
// hide each other's latency.
template <uint32_t kRows, uint32_t kColumns, uint32_t kDown, uint32_t kAcross, uint32_t kSteps,
          uint32_t kStages, bool kIsApart>
__global__ void __launch_bounds__(2 * (kRows / kDown) * (kColumns / kAcross), 1)
    ConvolveSteps(const __grid_constant__ StepProduct p) {
  constexpr uint32_t kHigh = kRows / kDown, kWide = kColumns / kAcross, kHalf = kHigh * kWide;
  constexpr uint32_t kThreads = 2 * kHalf, kHalfSteps = kSteps / 2;
  static_assert(kHigh % 8 == 0 && kWide % 4 == 0 && kHalfSteps % 4 == 0);
  using Memory = StepMemory<kRows, kColumns, kSteps, kStages>;
  constexpr uint32_t kRowBytes = Memory::kRowBytes, kColumnBytes = Memory::kColumnBytes;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ WindowTable<kRows, kColumns> table;
  const WindowPlace place(p, kRows, kColumns);
  FillTable<kRows, kColumns>(p, place, &table);
  __syncthreads();
  WaitForPrevious();
  const ColumnNumbers numbers = NumbersOf<float, kColumns>(p, place);

  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x % kHalf / 32, half = threadIdx.x / kHalf;
  // Within half a warp, lanes that differ only in the last bit have the same rows, and lanes that differ only
  // in the second last bit the same columns: a load of 16 bytes then takes two cycles instead of four.
  const uint32_t top = warp % (kHigh / 8) * 8 + lane / 8 * 2 + lane / 2 % 2,
                 left = warp / (kHigh / 8) * 4 + lane / 4 % 2 * 2 + lane % 2;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const auto rows_of = [&](uint32_t stage) { return address + stage * Memory::kStageBytes; };
  const auto columns_of = [&](uint32_t stage) { return rows_of(stage) + kSteps * kRowBytes; };
  StepCopier<kIsApart, kRows, kColumns, kSteps, kThreads, Memory::kPitch> copier(p, place, table.windows);
  const uint32_t tiles = min(p.steps - place.split * p.steps_per_split, p.steps_per_split) / kSteps;
#pragma unroll
  for (uint32_t stage = 0; stage + 1 < kStages; ++stage) {
    if (stage < tiles) copier.Start(p, rows_of(stage), columns_of(stage));
    MarkCopies();
  }
  float sums[kDown][kAcross] = {};
  uint32_t used = 0, filled = kStages - 1;
#pragma unroll 1
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    WaitForCopies<kStages - 2>();
    __syncthreads();  // the tile has arrived, and the previous one is no longer used
    if (tile + kStages - 1 < tiles) copier.Start(p, rows_of(filled), columns_of(filled));
    MarkCopies();
    MultiplySteps<kHalfSteps, kRowBytes, kColumnBytes, StepNumbers<kDown, kAcross, kHigh, kWide>>(
        rows_of(used) + half * kHalfSteps * kRowBytes + top * 16,
        columns_of(used) + half * kHalfSteps * kColumnBytes + left * 16, sums);
    used = used + 1 == kStages ? 0 : used + 1;
    filled = filled + 1 == kStages ? 0 : filled + 1;
  }
  EndCopies();
  __syncthreads();
  LetNextStart();
  float* const others = reinterpret_cast<float*>(shared) + threadIdx.x % kHalf;
  static_assert(kDown * kAcross * kHalf * sizeof(float) <= Memory::kBytes);
  if (half == 1) {
#pragma unroll
    for (uint32_t i = 0; i < kDown * kAcross; ++i) others[i * kHalf] = sums[i / kAcross][i % kAcross];
  }
  __syncthreads();
  if (half == 0) {
#pragma unroll
    for (uint32_t i = 0; i < kDown * kAcross; ++i) sums[i / kAcross][i % kAcross] += others[i * kHalf];
  }
  StoreSums<kRows, kColumns, kThreads>(p, place, numbers, &table, shared, [&](const auto& put) {
    if (half == 1) return;
#pragma unroll
    for (uint32_t i = 0; i < kDown; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kAcross; ++j) {
        put((i / 4 * kHigh + top) * 4 + i % 4, (j / 4 * kWide + left) * 4 + j % 4, sums[i][j]);
      }
    }
  });
}

}  // namespace anydml::step_windows
