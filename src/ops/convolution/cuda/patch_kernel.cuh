// The kernel of a product of patches with filters, except for the multiply instructions.
#pragma once

#include <algorithm>

#include "ops/convolution/cuda/patch_product.cuh"
#include "ops/convolution/cuda/store_sums.cuh"

namespace anydml::patches {

inline constexpr uint32_t kStages = 3;
inline constexpr uint32_t kSteps = kPatchChannels;
inline constexpr uint32_t kRowBytes = kSteps * 2, kUnits = kSteps / 8;
inline constexpr uint32_t kOutside = ~0u;
using Shared = SharedRows<kSteps>;

// The first row of the block's patch, counting rows with padding.
__device__ inline uint32_t FirstLine(const PatchProduct& q, const WindowPlace& place) {
  uint32_t position, x;
  const uint32_t image = q.product.positions.Divide(place.row, &position);
  return image * q.rows.divisor() + q.product.outputs[kMaxSpatial - 1].Divide(position, &x);
}

// Computes the places of the patch's pixels in the input.
template <uint32_t kThreads>
__device__ void FindPixels(const PatchProduct& q, uint32_t first_line, uint32_t* offsets) {
  const WindowProduct& p = q.product;
  const ConvolutionWindow &wy = p.windows[kMaxSpatial - 2], &wx = p.windows[kMaxSpatial - 1];
  for (uint32_t i = threadIdx.x; i < q.pixels.divisor(); i += kThreads) {
    uint32_t x, y;
    const uint32_t line = q.width.Divide(i, &x) + first_line;
    const uint32_t image = q.rows.Divide(line, &y);
    // Rows before the image wrap to large numbers.
    y -= wy.start_padding;
    x -= wx.start_padding;
    const bool inside = image < q.images && y < wy.input && x < wx.input;
    offsets[i] = inside ? image * p.image_stride + y * p.spatial_strides[kMaxSpatial - 2] +
                              x * p.spatial_strides[kMaxSpatial - 1]
                        : kOutside;
  }
}

// As FillTable, with the first tap's pixel of the patch.
template <uint32_t kThreads, uint32_t kRows, uint32_t kColumns>
__device__ void FillPatchTable(const PatchProduct& q, const WindowPlace& place, uint32_t first_line,
                               WindowTable<kRows, kColumns>* table) {
  const WindowProduct& p = q.product;
  for (uint32_t r = threadIdx.x; r < kRows; r += kThreads) {
    uint32_t pixel = 0;
    uint64_t target = 0;
    if (place.row + r < place.end) {
      uint32_t position, x;
      const uint32_t image = p.positions.Divide(place.row + r, &position);
      const uint32_t y = p.outputs[kMaxSpatial - 1].Divide(position, &x);
      pixel = (image * q.rows.divisor() + y - first_line) * q.width.divisor() + x;
      target = p.target.offset + image * p.target.outer[0] + place.group * p.target.outer[1] +
               place.split * p.split_stride + y * p.target.spatial[kMaxSpatial - 2] +
               x * p.target.spatial[kMaxSpatial - 1];
    }
    table->windows[r] = {pixel, 0};
    table->targets[r] = target;
  }
}

// Starts to copy pixels [begin, end) of a chunk's patch.
template <uint32_t kThreads>
__device__ __forceinline__ void StartPixels(const PatchProduct& q, const __half* input, uint32_t chunk,
                                            const uint32_t* offsets, uint32_t begin, uint32_t end,
                                            Shared to) {
  const uint32_t unit = threadIdx.x % kUnits, channel = chunk * kSteps + unit * 8;
  const uint32_t left = channel < q.product.channels ? q.product.channels - channel : 0;
  const uint32_t bytes = (left < 8 ? left : 8) * 2;
  for (uint32_t i = begin + threadIdx.x / kUnits; i < end; i += kThreads / kUnits) {
    const uint32_t offset = offsets[i];
    const bool inside = offset != kOutside && bytes != 0;
    StartCopyOf(inside ? bytes : 0, to.At(i, unit), input + (inside ? offset + channel : 0));
  }
}

// Copies a chunk's whole patch from an input without contiguous channels. Neighbouring threads have
// neighbouring pixels.
template <uint32_t kThreads>
__device__ void LoadPixels(const PatchProduct& q, const __half* input, uint32_t chunk,
                           const uint32_t* offsets, Shared to) {
  constexpr uint32_t kAtOnce = 4;
  const uint32_t units = q.pixels.divisor() * kUnits;
  const auto* const from = reinterpret_cast<const uint16_t*>(input);
  for (uint32_t first = threadIdx.x; first < units; first += kAtOnce * kThreads) {
    uint16_t numbers[kAtOnce][8];
#pragma unroll
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      uint32_t pixel;
      const uint32_t channel = chunk * kSteps + q.pixels.Divide(first + n * kThreads, &pixel) * 8;
      const uint32_t offset = first + n * kThreads < units ? offsets[pixel] : kOutside;
#pragma unroll
      for (uint32_t c = 0; c < 8; ++c) {
        const bool exists = offset != kOutside && channel + c < q.product.channels;
        numbers[n][c] = exists ? from[offset + (channel + c) * q.channel_stride] : uint16_t{0};
      }
    }
#pragma unroll
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      if (first + n * kThreads >= units) break;
      uint32_t pixel, words[4];
      const uint32_t unit = q.pixels.Divide(first + n * kThreads, &pixel);
#pragma unroll
      for (uint32_t w = 0; w < 4; ++w) words[w] = numbers[n][2 * w] | uint32_t{numbers[n][2 * w + 1]} << 16;
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to.At(pixel, unit)), "r"(words[0]),
                   "r"(words[1]), "r"(words[2]), "r"(words[3])
                   : "memory");
    }
  }
}

template <uint32_t kThreads, uint32_t kColumns>
__device__ __forceinline__ void StartFilters(const PatchProduct& q, const __half* filter, uint32_t column,
                                             uint32_t chunk, uint32_t tap, Shared to) {
  constexpr uint32_t kApart = kThreads / kUnits;
  static_assert(kColumns % kApart == 0);
  const WindowProduct& p = q.product;
  const uint32_t row = threadIdx.x / kUnits, unit = threadIdx.x % kUnits;
  const uint32_t channel = chunk * kSteps + unit * 8;
  uint32_t offset = (column + row) * p.filter_row + tap * p.padded_channels.divisor() + channel;
#pragma unroll
  for (uint32_t i = 0; i < kColumns / kApart; ++i, offset += kApart * p.filter_row) {
    const bool exists = column + row + i * kApart < p.columns && channel < p.padded_channels.divisor();
    StartCopy(to.At(row + i * kApart, unit), filter + (exists ? offset : 0), exists);
  }
}

// The work of a block. A Product has the sums of its thread: Multiply(patch, moved, filters) adds one tap,
// whose pixels are `moved` from the windows' first ones; ForEach(put) passes the sums on.
template <class Product>
__device__ __forceinline__ void RunPatches(const PatchProduct& q,
                                           WindowTable<Product::kRows, Product::kColumns>* table,
                                           unsigned char* shared) {
  constexpr uint32_t kRows = Product::kRows, kColumns = Product::kColumns, kThreads = Product::kThreads;
  constexpr uint32_t kFilterBytes = kColumns * kRowBytes;
  const WindowProduct& p = q.product;
  const WindowPlace place(p, kRows, kColumns);
  const auto filters = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const uint32_t patch_bytes = q.pixels.divisor() * kRowBytes;
  const auto filters_of = [&](uint32_t stage) { return Shared{filters + stage * kFilterBytes}; };
  const auto patch_of = [&](uint32_t chunk) {
    return Shared{filters + kStages * kFilterBytes + chunk % 2 * patch_bytes};
  };
  const uint32_t begin = place.split * q.per_split;
  const uint32_t end = min(begin + q.per_split, q.chunks);
  auto* const offsets =
      reinterpret_cast<uint32_t*>(shared + kStages * kFilterBytes + patch_bytes * (q.per_split > 1 ? 2 : 1));
  const uint32_t first_line = FirstLine(q, place);
  FindPixels<kThreads>(q, first_line, offsets);
  FillPatchTable<kThreads>(q, place, first_line, table);
  __syncthreads();
  WaitForPrevious();
  const ColumnNumbers numbers = NumbersOf<__half, kColumns>(p, place);

  const __half* const input = static_cast<const __half*>(p.input) + place.group * p.input_group;
  const __half* const filter = static_cast<const __half*>(p.filter) + place.group * p.filter_group;
  Product product(*table);

  // Filters are prefetched kStages - 1 taps ahead, so the next patch must be in flight before the last tap.
  const uint32_t slice = (q.pixels.divisor() + q.all_taps - 2) / (q.all_taps - 1);
  uint32_t ahead_chunk = begin, ahead_tap = 0, ahead_stage = 0;
  const auto start_filters = [&] {
    if (ahead_chunk < end) {
      StartFilters<kThreads, kColumns>(q, filter, place.column, ahead_chunk, ahead_tap,
                                       filters_of(ahead_stage));
    }
    if (++ahead_tap == q.all_taps) {
      ahead_tap = 0;
      ++ahead_chunk;
    }
    ahead_stage = ahead_stage + 1 == kStages ? 0 : ahead_stage + 1;
  };
  if (!q.is_apart) StartPixels<kThreads>(q, input, begin, offsets, 0, q.pixels.divisor(), patch_of(0));
#pragma unroll
  for (uint32_t stage = 0; stage + 1 < kStages; ++stage) {
    start_filters();
    MarkCopies();
  }
  if (q.is_apart) LoadPixels<kThreads>(q, input, begin, offsets, patch_of(0));

  uint32_t stage = 0;
  for (uint32_t chunk = begin; chunk < end; ++chunk) {
    uint32_t tap_x = 0, line = 0;  // in pixels, from the window's first one
    for (uint32_t tap = 0; tap < q.all_taps; ++tap) {
      WaitForCopies<kStages - 2>();
      Product::ShowCopies();
      __syncthreads();  // the tap has arrived, and the previous one is no longer used
      start_filters();
      if (chunk + 1 < end && tap + 1 < q.all_taps) {
        StartPixels<kThreads>(q, input, chunk + 1, offsets, tap * slice,
                              min(tap * slice + slice, q.pixels.divisor()), patch_of(chunk + 1 - begin));
      }
      MarkCopies();
      const uint32_t moved = line + tap_x * p.windows[kMaxSpatial - 1].dilation;
      product.Multiply(patch_of(chunk - begin), moved, filters_of(stage));
      if (++tap_x == p.windows[kMaxSpatial - 1].taps) {
        tap_x = 0;
        line += p.windows[kMaxSpatial - 2].dilation * q.width.divisor();
      }
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
  }
  EndCopies();
  __syncthreads();
  LetNextStart();
  StoreSums<kRows, kColumns, kThreads>(p, place, numbers, table, shared,
                                       [&](const auto& put) { product.ForEach(put); });
}

}  // namespace anydml::patches
