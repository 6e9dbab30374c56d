// FLOAT32 products of windows with filters, by FFMA instructions. One reads three registers, and each of the
// two register banks (even and odd) delivers one per cycle. So it takes a single cycle only if one operand is
// reused from the previous instruction and the other two are in different banks. To help the compiler with
// that, all operands are in registers long before their use, multiplications with a column are consecutive,
// and even and odd steps may have separate sums.
#pragma once

#include "ops/convolution/cuda/store_sums.cuh"

namespace anydml::float_windows {

// Rows of kSteps numbers and 16 bytes of padding: the same unit of eight consecutive rows is in different
// banks, and everything that a thread reads of a tile is at fixed offsets.
template <uint32_t kSteps>
struct PaddedRows {
  static constexpr uint32_t kUnits = kSteps / 4, kRowBytes = kSteps * 4 + 16;
  uint32_t address;

  __device__ uint32_t At(uint32_t row, uint32_t unit) const { return address + row * kRowBytes + unit * 16; }
};

// Copies windows and filters to shared memory; what is the same for all tiles stays in registers.
template <uint32_t kRows, uint32_t kColumns, uint32_t kSteps, uint32_t kThreads>
class TileCopier {
  using Shared = PaddedRows<kSteps>;
  static constexpr uint32_t kUnits = Shared::kUnits, kApart = kThreads / kUnits;
  static constexpr uint32_t kOfRows = (kRows + kApart - 1) / kApart,
                            kOfColumns = (kColumns + kApart - 1) / kApart;
  static_assert(kThreads % kUnits == 0);

 public:
  template <class Product>
  __device__ __forceinline__ TileCopier(const Product& p, const WindowPlace& place, const uint2* windows)
      : row_(threadIdx.x / kUnits), unit_(threadIdx.x % kUnits) {
    const uint32_t step = place.split * p.steps_per_split + unit_ * 4, column = place.column + row_;
    input_ = static_cast<const float*>(p.input) + place.group * p.input_group;
    steps_left_ = p.steps > step ? p.steps - step : 0;
    uint32_t tap = p.padded_channels.Divide(step, &channel_);
#pragma unroll
    for (int d = kMaxSpatial - 1; d > 0; --d) tap = p.taps[d].Divide(tap, &taps_[d]);
    taps_[0] = tap;
#pragma unroll
    for (uint32_t i = 0; i < kOfRows; ++i) {
      windows_[i] = row_ + i * kApart < kRows ? windows[row_ + i * kApart] : uint2{0, 0};
    }
    filter_ = static_cast<const float*>(p.filter) + place.group * p.filter_group;
    if constexpr (Product::kIsGeneral) filter_ += place.phase * p.filter_phase;
    if (steps_left_ != 0) filter_ += step;
    if (column < p.columns) filter_ += uint64_t{column} * p.filter_row;
#pragma unroll
    for (uint32_t i = 0; i < kOfColumns; ++i) {
      const bool exists = column + i * kApart < p.columns;
      filters_[i] = exists ? i * kApart * p.filter_row : 0;
      bytes_[i] = exists ? 16 : 0;
    }
  }

  // Starts the next steps.
  __device__ __forceinline__ void Start(const WindowProduct& p, Shared rows, Shared columns) {
    constexpr uint32_t kNever = 1u << 31;  // no window has that bit
    static_assert(kMaxSpatial * kMostWindowTaps <= 31);
    const bool exist = steps_left_ != 0;
    uint32_t wanted = exist ? 0 : kNever, offset = channel_;
#pragma unroll
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      wanted |= 1u << (d * kMostWindowTaps + taps_[d]);
      offset += taps_[d] * p.tap_strides[d];
    }
    const uint32_t left = p.channels - channel_, bytes = (left < 4 ? left : 4) * 4;
    const uint32_t to_row = rows.At(row_, unit_), to_column = columns.At(row_, unit_);
#pragma unroll
    for (uint32_t i = 0; i < kOfRows; ++i) {
      if (kRows % kApart != 0 && row_ + i * kApart >= kRows) break;
      const bool inside = (windows_[i].y & wanted) == wanted;
      StartCopyOf(inside ? bytes : 0, to_row + i * kApart * Shared::kRowBytes,
                  input_ + (inside ? windows_[i].x + offset : 0));
    }
#pragma unroll
    for (uint32_t i = 0; i < kOfColumns; ++i) {
      if (kColumns % kApart != 0 && row_ + i * kApart >= kColumns) break;
      StartCopyOf(exist ? bytes_[i] : 0, to_column + i * kApart * Shared::kRowBytes, filter_ + filters_[i]);
    }
    Advance(p);
  }

 private:
  __device__ __forceinline__ void Advance(const WindowProduct& p) {
    steps_left_ = steps_left_ > kSteps ? steps_left_ - kSteps : 0;
    if (steps_left_ != 0) filter_ += kSteps;
    channel_ += kSteps;
    while (channel_ >= p.padded_channels.divisor()) {
      channel_ -= p.padded_channels.divisor();
      if (++taps_[2] < p.windows[2].taps) continue;
      taps_[2] = 0;
      if (++taps_[1] < p.windows[1].taps) continue;
      taps_[1] = 0;
      ++taps_[0];
    }
  }

  const uint32_t row_, unit_;
  const float *input_, *filter_;
  uint32_t steps_left_, channel_, taps_[kMaxSpatial];
  uint2 windows_[kOfRows];
  uint32_t filters_[kOfColumns], bytes_[kOfColumns];
};

__device__ __forceinline__ float Part(const float4& x, uint32_t i) {
  return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

// A thread's rows and columns of four steps.
template <uint32_t kDown, uint32_t kAcross>
struct Fragments {
  float4 rows[kDown], columns[kAcross];

  // Rows are kHigh apart, columns kWide.
  template <uint32_t kHigh, uint32_t kWide, uint32_t kRowBytes>
  __device__ __forceinline__ void LoadFrom(uint32_t row, uint32_t column) {
#pragma unroll
    for (uint32_t j = 0; j < kAcross; ++j) columns[j] = LoadFourFloats(column + j * kWide * kRowBytes);
#pragma unroll
    for (uint32_t i = 0; i < kDown; ++i) rows[i] = LoadFourFloats(row + i * kHigh * kRowBytes);
  }

  template <uint32_t kWays>
  __device__ __forceinline__ void Multiply(float (&sums)[kWays][kDown][kAcross]) const {
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
#pragma unroll
      for (uint32_t j = 0; j < kAcross; ++j) {
#pragma unroll
        for (uint32_t n = 0; n < kDown; ++n) {
          const uint32_t i = j % 2 == 0 ? n : kDown - 1 - n;  // the next column begins with the same row, so
                                                              // that its operand is reused
          float& sum = sums[k % kWays][i][j];
          sum = __fmaf_rn(Part(rows[i], k), Part(columns[j], k), sum);
        }
      }
    }
  }
};

// Multiplies a whole tile: fragments are loaded while previous ones are used. Without kIsAhead, in the order
// of loading, with fewer registers and more instructions, for tiles of few numbers per thread.
template <bool kIsAhead, uint32_t kHigh, uint32_t kWide, uint32_t kSteps, uint32_t kWays, uint32_t kDown,
          uint32_t kAcross>
__device__ __forceinline__ void MultiplyTile(uint32_t row, uint32_t column,
                                             float (&sums)[kWays][kDown][kAcross]) {
  constexpr uint32_t kRowBytes = PaddedRows<kSteps>::kRowBytes;
  if constexpr (kIsAhead) {
    Fragments<kDown, kAcross> now, next;
    now.template LoadFrom<kHigh, kWide, kRowBytes>(row, column);
#pragma unroll 1
    for (uint32_t step = 0; step < kSteps; step += 8, row += 32, column += 32) {
      next.template LoadFrom<kHigh, kWide, kRowBytes>(row + 16, column + 16);
      now.Multiply(sums);
      now.template LoadFrom<kHigh, kWide, kRowBytes>(row + 32, column + 32);  // at the end this reads padding
      next.Multiply(sums);
    }
  } else {
#pragma unroll
    for (uint32_t unit = 0; unit < kSteps / 4; ++unit) {
      float4 rows[kDown];
#pragma unroll
      for (uint32_t i = 0; i < kDown; ++i) rows[i] = LoadFourFloats(row + i * kHigh * kRowBytes + unit * 16);
#pragma unroll
      for (uint32_t j = 0; j < kAcross; ++j) {
        const float4 some = LoadFourFloats(column + j * kWide * kRowBytes + unit * 16);
#pragma unroll
        for (uint32_t k = 0; k < 4; ++k) {
#pragma unroll
          for (uint32_t i = 0; i < kDown; ++i) {
            float& sum = sums[k % kWays][i][j];
            sum = __fmaf_rn(Part(rows[i], k), Part(some, k), sum);
          }
        }
      }
    }
  }
}

// A thread has kDown x kAcross sums, spaced by the number of threads in each direction, kWays times. A warp
// is 8 threads down and 4 across.
template <class Product, uint32_t kRows, uint32_t kColumns, uint32_t kDown, uint32_t kAcross, uint32_t kWays,
          bool kIsAhead, uint32_t kSteps, uint32_t kStages, uint32_t kBlocks>
__global__ void __launch_bounds__(kRows / kDown * (kColumns / kAcross), kBlocks)
    ConvolveFloat(const __grid_constant__ Product p) {
  constexpr uint32_t kHigh = kRows / kDown, kWide = kColumns / kAcross, kThreads = kHigh * kWide;
  static_assert(kHigh % 8 == 0 && kWide % 4 == 0 && kSteps % 8 == 0);
  using Shared = PaddedRows<kSteps>;
  constexpr uint32_t kRowBytes = Shared::kRowBytes, kStageBytes = (kRows + kColumns) * kRowBytes;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ TableOf<Product, kRows, kColumns> table;
  const WindowPlace place(p, kRows, kColumns);
  FillTable<kRows, kColumns>(p, place, &table);
  __syncthreads();
  WaitForPrevious();
  const ColumnNumbers numbers = NumbersOf<float, kColumns>(p, place);

  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Within half a warp, lanes that differ only in the last bit have the same rows, and lanes that differ only
  // in the second last bit the same columns: a load of 16 bytes then takes two cycles instead of four.
  const uint32_t top = warp % (kHigh / 8) * 8 + lane / 8 * 2 + lane / 2 % 2,
                 left = warp / (kHigh / 8) * 4 + lane / 4 % 2 * 2 + lane % 2;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const auto rows_of = [&](uint32_t stage) { return Shared{address + stage * kStageBytes}; };
  const auto columns_of = [&](uint32_t stage) {
    return Shared{address + stage * kStageBytes + kRows * kRowBytes};
  };
  TileCopier<kRows, kColumns, kSteps, kThreads> copier(p, place, table.windows);
  const uint32_t steps_left = p.steps - place.split * p.steps_per_split;
  const uint32_t tiles = (min(steps_left, p.steps_per_split) + kSteps - 1) / kSteps;
#pragma unroll
  for (uint32_t stage = 0; stage + 1 < kStages; ++stage) {
    if (stage < tiles) copier.Start(p, rows_of(stage), columns_of(stage));
    MarkCopies();
  }
  float sums[kWays][kDown][kAcross] = {};
  uint32_t used = 0, filled = kStages - 1;
#pragma unroll 1
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    WaitForCopies<kStages - 2>();
    __syncthreads();  // the tile has arrived, and the previous one is no longer used
    if (tile + kStages - 1 < tiles) copier.Start(p, rows_of(filled), columns_of(filled));
    MarkCopies();
    MultiplyTile<kIsAhead, kHigh, kWide, kSteps>(rows_of(used).At(top, 0), columns_of(used).At(left, 0),
                                                 sums);
    used = used + 1 == kStages ? 0 : used + 1;
    filled = filled + 1 == kStages ? 0 : filled + 1;
  }
  EndCopies();
  __syncthreads();
  LetNextStart();
  StoreSums<kRows, kColumns, kThreads>(p, place, numbers, &table, shared, [&](const auto& put) {
#pragma unroll
    for (uint32_t i = 0; i < kDown; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kAcross; ++j) {
        float sum = sums[0][i][j];
        if constexpr (kWays == 2) sum += sums[1][i][j];
        put(top + i * kHigh, left + j * kWide, sum);
      }
    }
  });
}

}  // namespace anydml::float_windows
