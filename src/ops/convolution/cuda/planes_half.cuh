// FLOAT16 convolutions of planes in place, with three taps in a row: a tile has 64 output channels of several
// rows of an image. The left factor is filters, with a row per output channel; the right one is the image,
// with a row per channel, whose columns are pixels. Shifted by one pixel, a row is not aligned as box copies
// and tensor cores require. So each tap of a row has its own sums over the same pixels, and a result adds the
// first tap's sum of the pixel on the left, the second's of its own, and the third's of the one on the right.
// Taps in a column are other rows of the same box.
#pragma once

#include "ops/convolution/cuda/layout_change_half.cuh"
#include "ops/device/cuda/hopper.cuh"

namespace anydml::planes {

inline constexpr uint32_t kTaps = 3;       // per row
inline constexpr uint32_t kChannels = 64;  // of the output per tile, and of the input per step
inline constexpr uint32_t kPixels = 64;    // per row in shared memory
// As many pixels of as many channels, or a tap's filters of as many output channels.
inline constexpr uint32_t kBlockBytes = kChannels * kPixels * sizeof(__half);
static_assert(kBlockBytes == kChannels * kChannels * sizeof(__half));
inline constexpr uint32_t kFilterBytes = kTaps * kBlockBytes;           // of a row of taps
inline constexpr uint32_t kWarpgroup = 128, kThreads = 3 * kWarpgroup;  // the last warpgroup copies
inline constexpr uint32_t kMostImages = 4, kMostFilters = 8;            // in shared memory
inline constexpr uint32_t kHeadBytes = 1024;                            // of shared memory, for barriers

struct PlaneProduct {
  CUtensorMap input;   // pixels of a row, channels, rows, images
  const void* filter;  // [channels of a tile][step][row of taps][tap], in blocks
  const __half* bias;  // may be null
  __half* output;
  uint64_t bias_stride;
  uint64_t output_image, output_channel, output_row, output_offset;
  SumLimits limits;
  WindowTail tail;
  uint32_t outputs, height, width;  // of the output
  uint32_t taps, top;               // in a column; padding
  uint32_t steps, tiles;
  FastDivisor channel_tiles, strips, row_tiles;
  uint32_t images, filters;  // number that fits into shared memory
  uint32_t resident;         // all filters are loaded once and stay
  // then they may be in the operator's layout, [output][input][row of taps][tap], and blocks pack them
  uint32_t packs;
  uint32_t inputs;
  FastDivisor row_units, channel_taps;  // of an output's filters; of a channel
  uint32_t staggered;                   // see MultiplyPlanes; shared memory has room for all filters of a
                                        // step
};

// A strip's pixels from `left` on. The first and the last unit only serve as neighbours, except at an image's
// edges.
struct PlacedTile {
  uint32_t channel, image, top, left, strip;

  __device__ PlacedTile(const PlaneProduct& p, uint32_t tile, uint32_t rows, uint32_t columns) {
    const uint32_t in_image = p.strips.Divide(p.channel_tiles.Divide(tile, &channel), &strip);
    image = p.row_tiles.Divide(in_image, &top);
    channel *= kChannels;
    left = strip * (columns - 2 * kHalfUnit);
    top *= rows;
  }
};

// The layout of shared memory, and the barriers of its ring buffers.
struct PlaneMemory {
  uint32_t base, image_bytes, filters, images;

  __host__ __device__ PlaneMemory(const PlaneProduct& p, uint32_t address, uint32_t rows)
      : base(address),
        image_bytes((rows + p.taps - 1) * kBlockBytes),
        filters(base + kHeadBytes),
        images(filters + p.filters * kFilterBytes) {}

  __device__ uint32_t ImageIsThere(uint32_t i) const { return base + 8 * i; }
  __device__ uint32_t ImageIsFree(uint32_t i) const { return base + 8 * (kMostImages + i); }
  __device__ uint32_t FilterIsThere(uint32_t i) const { return base + 8 * (2 * kMostImages + i); }
  __device__ uint32_t FilterIsFree(uint32_t i) const {
    return base + 8 * (2 * kMostImages + kMostFilters + i);
  }
  __device__ uint32_t FirstStep() const { return base + 16 * (kMostImages + kMostFilters); }
};

// An index into a ring of `count`, and how often it has wrapped.
struct Turn {
  uint32_t at = 0, parity = 0;

  __device__ __forceinline__ void Next(uint32_t count) {
    if (++at < count) return;
    at = 0;
    parity ^= 1;
  }
};

// The copying thread; it runs ahead as far as there is room.
template <uint32_t kRows, uint32_t kColumns>
__device__ __forceinline__ void CopyPlanes(const PlaneProduct& p, const PlaneMemory& memory) {
  const auto* const filters = static_cast<const uint8_t*>(p.filter);
  if (p.resident && !p.packs) {
    hopper::ArriveAndExpect(memory.FilterIsThere(0), p.filters * kFilterBytes);
    for (uint32_t i = 0; i < p.filters; ++i) {
      hopper::StartBytes(filters + i * kFilterBytes, kFilterBytes, memory.filters + i * kFilterBytes,
                         memory.FilterIsThere(0));
    }
  }
  Turn image, filter;
  for (uint32_t number = blockIdx.x; number < p.tiles; number += gridDim.x) {
    const PlacedTile tile(p, number, kRows, kColumns);
    const uint8_t* from = filters + uint64_t{tile.channel / kChannels} * p.steps * p.taps * kFilterBytes;
    for (uint32_t step = 0; step < p.steps; ++step) {
      hopper::WaitFor(memory.ImageIsFree(image.at), image.parity ^ 1);
      hopper::ArriveAndExpect(memory.ImageIsThere(image.at), memory.image_bytes);
      hopper::StartBox(p.input,
                       {static_cast<int32_t>(tile.left), static_cast<int32_t>(step * kChannels),
                        static_cast<int32_t>(tile.top - p.top), static_cast<int32_t>(tile.image)},
                       memory.images + image.at * memory.image_bytes, memory.ImageIsThere(image.at));
      image.Next(p.images);
      if (p.resident) continue;
      for (uint32_t tap = 0; tap < p.taps; ++tap, from += kFilterBytes) {
        hopper::WaitFor(memory.FilterIsFree(filter.at), filter.parity ^ 1);
        hopper::ArriveAndExpect(memory.FilterIsThere(filter.at), kFilterBytes);
        hopper::StartBytes(from, kFilterBytes, memory.filters + filter.at * kFilterBytes,
                           memory.FilterIsThere(filter.at));
        filter.Next(p.filters);
      }
    }
  }
}

// Packs filters from the operator's layout to where CopyPlanes would copy packed ones; all multiplying
// threads take part.
__device__ __forceinline__ void PackFilters(const PlaneProduct& p, const PlaneMemory& memory) {
  constexpr uint32_t kPackers = 2 * kWarpgroup, kAtOnce = 9;
  if (p.outputs != kChannels || p.inputs % kChannels != 0) {  // missing ones are 0
    for (uint32_t i = threadIdx.x * 16; i < p.filters * kFilterBytes; i += kPackers * 16) {
      asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(memory.filters + i), "r"(0) : "memory");
    }
    hopper::WaitForFirst(kPackers);
  }
  const auto* const from = static_cast<const uint4*>(p.filter);
  const uint32_t units = p.outputs * p.row_units.divisor(), taps = p.channel_taps.divisor();
  for (uint32_t first = threadIdx.x; first < units; first += kPackers * kAtOnce) {
    alignas(16) uint16_t numbers[kAtOnce][kHalfUnit];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t unit = first + i * kPackers;
      if (unit < units) *reinterpret_cast<uint4*>(numbers[i]) = from[unit];
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t unit = first + i * kPackers;
      if (unit >= units) continue;
      uint32_t in_row, tap;
      const uint32_t output = p.row_units.Divide(unit, &in_row);
      uint32_t input = p.channel_taps.Divide(in_row * kHalfUnit, &tap);
#pragma unroll
      for (const uint16_t number : numbers[i]) {
        const uint32_t block = input / kChannels * taps + tap, column = input % kChannels;
        const uint32_t to =
            SharedRows<kChannels>{memory.filters + block * kBlockBytes}.At(output, column / kHalfUnit);
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(to + column % kHalfUnit * 2), "h"(number) : "memory");
        if (++tap < taps) continue;
        tap = 0;
        ++input;
      }
    }
  }
  hopper::ShowToProducts();
  hopper::WaitForFirst(kPackers);
}

// Four lanes have a word each of four units; afterwards each has a whole unit.
__device__ __forceinline__ void ExchangeWords(uint32_t (&words)[4]) {
  const uint32_t lane = threadIdx.x % 4;
#pragma unroll
  for (uint32_t distance = 1; distance <= 2; distance *= 2) {
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t low = distance == 1 ? 2 * i : i, high = low + distance;
      const bool keeps_high = (lane & distance) != 0;
      const uint32_t got = __shfl_xor_sync(~0u, keeps_high ? words[low] : words[high], distance);
      if (keeps_high) {
        words[low] = got;
      } else {
        words[high] = got;
      }
    }
  }
}

// The sums over all taps of a row, for one half of the channels. Four lanes have two pixels each of a unit of
// eight.
template <uint32_t kColumns>
__device__ __forceinline__ void AddNeighbours(const float (&sums)[kTaps][kColumns / 2], uint32_t half,
                                              float (&results)[kColumns / 4]) {
  constexpr uint32_t kUnits = kColumns / kHalfUnit;
  const uint32_t lane = threadIdx.x % 4;
  float before = 0, after = 0;  // pixels of the neighbouring units, shifted to the adjacent lane
#pragma unroll
  for (uint32_t unit = 0; unit < kUnits; ++unit) {
    const uint32_t at = unit * 4 + half * 2;
    const float moved = __shfl_sync(~0u, sums[0][at + 1], (lane + 3) % 4, 4);
    results[unit * 2] = (lane == 0 ? before : moved) + sums[1][at] + sums[2][at + 1];
    before = moved;
  }
#pragma unroll
  for (uint32_t unit = kUnits; unit-- > 0;) {
    const uint32_t at = unit * 4 + half * 2;
    const float moved = __shfl_sync(~0u, sums[2][at], (lane + 1) % 4, 4);
    results[unit * 2 + 1] = sums[0][at] + sums[1][at + 1] + (lane == 3 ? after : moved);
    after = moved;
  }
}

// For a thread's channels: one in each half of its warp's.
struct ChannelNumbers {
  uint32_t channel;
  bool exists;
  float bias = 0;
  ColumnNumbers tail;

  __device__ __forceinline__ ChannelNumbers(const PlaneProduct& p, const PlacedTile& tile, uint32_t half)
      : channel(tile.channel + threadIdx.x / 32 % 4 * 16 + half * 8 + threadIdx.x % 32 / 4),
        exists(channel < p.outputs) {
    if (!exists) return;
    if (p.bias != nullptr) bias = __half2float(p.bias[channel * p.bias_stride]);
    tail = HalfTail{p.tail}.NumbersOf(channel);
  }
};

template <uint32_t kColumns>
__device__ __forceinline__ void StoreRow(const PlaneProduct& p, const PlacedTile& tile, uint32_t row,
                                         const ChannelNumbers& numbers,
                                         const float (&results)[kColumns / 4]) {
  constexpr uint32_t kUnits = kColumns / kHalfUnit;
  const uint32_t first_unit = tile.strip == 0 ? 0 : 1;
  const uint32_t end_unit = tile.strip + 1 == p.strips.divisor() ? kUnits : kUnits - 1;
  const HalfTail tail = {p.tail};
  const uint64_t offset = p.output_offset + tile.image * p.output_image + numbers.channel * p.output_channel +
                          row * p.output_row + tile.left;
#pragma unroll
  for (uint32_t first = 0; first < kUnits; first += 4) {
    alignas(16) uint32_t words[4] = {};
#pragma unroll
    for (uint32_t i = 0; i < 4 && first + i < kUnits; ++i) {
      const uint32_t at = (first + i) * 2;
      words[i] = WithOneNan(PackHalves(LimitHalf(p.limits, results[at] + numbers.bias),
                                       LimitHalf(p.limits, results[at + 1] + numbers.bias)));
    }
    ExchangeWords(words);
    const uint32_t unit = first + threadIdx.x % 4;
    const bool exists = numbers.exists && unit >= first_unit && unit < end_unit;
    if (!exists || tile.left + unit * kHalfUnit >= p.width) continue;
    tail.Normalize(numbers.tail, words);
    const uint64_t at = offset + unit * kHalfUnit;
    *reinterpret_cast<uint4*>(p.output + at) = tail.Add(*reinterpret_cast<const uint4*>(words), at);
  }
}

// The work of a warpgroup: kMine of a tile's kRows, from `first` on. The warpgroup of the lower rows starts
// after the first step of the other one: then one stores results while the other uses the tensor cores.
template <uint32_t kMine, uint32_t kRows, uint32_t kColumns>
__device__ __forceinline__ void MultiplyPlanes(const PlaneProduct& p, const PlaneMemory& memory,
                                               uint32_t first) {
  const uint32_t lane = threadIdx.x % 32;
  Turn image, filter;
  if (p.resident && !p.packs) hopper::WaitFor(memory.FilterIsThere(0), 0);
  if (p.staggered && first != 0) hopper::WaitFor(memory.FirstStep(), 0);
  float sums[kMine][kTaps][kColumns / 2];
#pragma unroll
  for (uint32_t i = 0; i < kMine * kTaps; ++i) {
#pragma unroll
    for (float& sum : sums[i / kTaps][i % kTaps]) sum = 0;
  }
  for (uint32_t number = blockIdx.x; number < p.tiles; number += gridDim.x) {
    if (p.resident) filter.at = 0;
    uint32_t step = 0;  // There is at least one step and one tap: the compiler must see that the sums are
                        // waited for.
#pragma unroll 1
    do {
      uint32_t row = memory.images + image.at * memory.image_bytes + first * kBlockBytes;
      hopper::WaitFor(memory.ImageIsThere(image.at), image.parity);
      uint32_t tap = 0;
#pragma unroll 1
      do {
        if (!p.resident) hopper::WaitFor(memory.FilterIsThere(filter.at), filter.parity);
        const uint64_t left = hopper::MatrixAt(memory.filters + filter.at * kFilterBytes);
        const uint64_t right = hopper::MatrixAt(row);
        __syncwarp();
        hopper::BeginProducts();
#pragma unroll
        for (uint32_t k = 0; k < kChannels / 16; ++k) {
#pragma unroll
          for (uint32_t i = 0; i < kMine * kTaps; ++i) {
            constexpr uint32_t kLeftBytes = 16 * sizeof(__half), kRightBytes = 16 * kPixels * sizeof(__half);
            hopper::WarpgroupProduct<kColumns>::Add(left + (i / kMine * kBlockBytes + k * kLeftBytes) / 16,
                                                    right + (i % kMine * kBlockBytes + k * kRightBytes) / 16,
                                                    k + tap + step, sums[i % kMine][i / kMine]);
          }
        }
        hopper::EndProducts();
        hopper::ArriveIf(!p.resident && lane == 0, memory.FilterIsFree(filter.at));
        filter.Next(p.filters);
        row += kBlockBytes;
      } while (++tap < p.taps);
      hopper::ArriveIf(lane == 0, memory.ImageIsFree(image.at));
      hopper::ArriveIf(lane == 0 && first == 0 && step == 0 && number == blockIdx.x, memory.FirstStep());
      image.Next(p.images);
    } while (++step < p.steps);
    const PlacedTile tile(p, number, kRows, kColumns);
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      const ChannelNumbers numbers(p, tile, half);
#pragma unroll
      for (uint32_t r = 0; r < kMine; ++r) {
        float results[kColumns / 4];
        AddNeighbours<kColumns>(sums[r], half, results);
        const uint32_t y = tile.top + first + r;
        if (y < p.height) StoreRow<kColumns>(p, tile, y, numbers, results);
      }
    }
  }
}

// Persistent blocks: the next tile's copies are in flight while results are stored.
template <uint32_t kRows, uint32_t kColumns>
__global__ void __launch_bounds__(kThreads, 1) ConvolvePlanes(const __grid_constant__ PlaneProduct p) {
  constexpr uint32_t kWarps = 2 * kWarpgroup / 32;
  extern __shared__ __align__(1024) unsigned char shared[];
  const PlaneMemory memory(p, static_cast<uint32_t>(__cvta_generic_to_shared(shared)), kRows);
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < kMostImages; ++i) {
      hopper::InitializeBarrier(memory.ImageIsThere(i), 1);
      hopper::InitializeBarrier(memory.ImageIsFree(i), kWarps);
    }
    for (uint32_t i = 0; i < kMostFilters; ++i) {
      hopper::InitializeBarrier(memory.FilterIsThere(i), 1);
      hopper::InitializeBarrier(memory.FilterIsFree(i), kWarps);
    }
    hopper::InitializeBarrier(memory.FirstStep(), kWarps / 2);
    hopper::ShowBarriers();
  }
  __syncthreads();
  WaitForPrevious();
  LetNextStart();
  if (threadIdx.x >= 2 * kWarpgroup) {
    hopper::GiveRegisters<24>();
    if (threadIdx.x == 2 * kWarpgroup) CopyPlanes<kRows, kColumns>(p, memory);
  } else {
    hopper::TakeRegisters<240>();
    if (p.packs) PackFilters(p, memory);
    // Two calls, because the places of the factors should be uniform over the threads.
    if (threadIdx.x < kWarpgroup) {
      MultiplyPlanes<kRows / 2, kRows, kColumns>(p, memory, 0);
    } else {
      MultiplyPlanes<kRows / 2, kRows, kColumns>(p, memory, kRows / 2);
    }
  }
}

}  // namespace anydml::planes
