#include "ops/convolution/cpu/pixel_filter.h"

#include <algorithm>
#include <cstring>

#include "ops/common/parallel.h"
#include "ops/common/transpose_block.h"
#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/numbers/convert_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kTurnedNumbers = 9216;  // at a time: 16 channels of 3x3 filters with 64 input channels

const uint32_t* AsBits(const float* numbers) { return reinterpret_cast<const uint32_t*>(numbers); }
const uint16_t* AsBits(const uint16_t* numbers) { return numbers; }
uint32_t* AsBits(float* numbers) { return reinterpret_cast<uint32_t*>(numbers); }
uint16_t* AsBits(uint16_t* numbers) { return numbers; }

// Rows of whole vectors, `taps` for each channel; the rows of a tap go to one place.
struct TurnedRows {
  uint64_t channels, taps;
  uint32_t vectors;
  uint64_t width;
  uint64_t tap_stride;  // between places

  void Put(const float* rows, float* to) const {
    for (uint64_t tap = 0; tap < taps; ++tap) {
      ConvolutionPixelTiles().gather(rows + tap * width, taps * width, channels, vectors, 0,
                                     to + tap * tap_stride);
    }
  }
  void Put(const uint16_t* rows, float* to) const {
    float numbers[kTurnedNumbers];
    HalvesToFloats(rows, numbers, channels * taps * width);
    Put(numbers, to);
  }
  void Put(const uint16_t* rows, uint16_t* to) const {
    for (uint64_t channel = 0; channel < channels; ++channel) {
      for (uint64_t tap = 0; tap < taps; ++tap, rows += width) {
        std::memcpy(to + tap * tap_stride + channel * width, rows, width * sizeof(uint16_t));
      }
    }
  }
};

}  // namespace

bool HasFiltersInOrder(const ConvolutionShape& shape) {
  const PixelTiles& tiles = ConvolutionPixelTiles();
  if (shape.Taps() * tiles.vectors * tiles.lanes > kTurnedNumbers) return false;
  uint64_t next = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; next *= shape.windows[d].taps) {
    if (shape.windows[d].taps != 1 && shape.filter.spatial[d] != next) return false;
  }
  return shape.input_channels == 1 || shape.filter.channel == next;
}

PixelFilter::PixelFilter(const ConvolutionShape& shape, DataType type, uint32_t lanes, uint32_t max_vectors)
    : shape_(shape), type_(type), lanes_(lanes), in_order_(HasFiltersInOrder(shape)) {
  vectors_ = (shape.output_channels + lanes - 1) / lanes;
  blocks_ = (vectors_ + max_vectors - 1) / max_vectors;
}

uint64_t PixelFilter::bytes() const {
  return shape_.outer[1] * vectors_ * lanes_ * shape_.Steps() * (BitSize(type_) / 8);
}

// Blocks of nearly equal size: a tile of one vector is inefficient.
PixelFilter::Block PixelFilter::BlockOf(uint64_t number) const {
  const uint64_t begin = vectors_ * number / blocks_, end = vectors_ * (number + 1) / blocks_;
  Block block;
  block.vector = begin;
  block.vectors = static_cast<uint32_t>(end - begin);
  block.channel = begin * lanes_;
  block.channels = std::min(end * lanes_, shape_.output_channels) - block.channel;
  block.last_channels = static_cast<uint32_t>(block.channels % lanes_);
  return block;
}

void PixelFilter::Pack(const std::byte* filter, Executor* executor, uint32_t threads, std::byte* to) const {
  const uint64_t all = shape_.outer[1] * blocks_;
  const auto workers = static_cast<uint32_t>(std::min<uint64_t>(threads, all));
  ParallelFor(executor, workers, [&](uint32_t worker) {
    const uint64_t end = PartBegin(all, worker + 1, workers);
    for (uint64_t number = PartBegin(all, worker, workers); number < end; ++number) {
      const uint64_t group = number / blocks_;
      const Block block = BlockOf(number % blocks_);
      const uint64_t at = OffsetOf(group, block);
      if (type_ == DataType::kFloat16) {
        PackBlock(reinterpret_cast<const uint16_t*>(filter), group, block,
                  reinterpret_cast<uint16_t*>(to) + at);
      } else {
        PackBlock(reinterpret_cast<const float*>(filter), group, block, reinterpret_cast<float*>(to) + at);
      }
    }
  });
}

template <typename T>
void PixelFilter::PackBlock(const T* filter, uint64_t group, const Block& block, T* to) const {
  const ConvolutionShape& p = shape_;
  if (in_order_) return TurnChannels(filter + SourceOf(group, block), block, 0, p.input_channels, to);
  const uint64_t width = uint64_t{block.vectors} * lanes_, taps = p.Taps();
  const uint64_t first = p.filter.Matrix(0, group) + block.channel * p.filter.output_channel;
  constexpr uint64_t kSome =
      32;  // input channels at a time: what is read and written of them stays in the cache
  for (uint64_t begin = 0; begin < p.input_channels; begin += kSome) {
    const uint64_t end = std::min(begin + kSome, p.input_channels);
    for (uint64_t tap = 0; tap < taps; ++tap) {
      uint64_t rest = tap, at = first;
      for (uint32_t d = kMaxSpatial; d-- > 0; rest /= p.windows[d].taps) {
        at += rest % p.windows[d].taps * p.filter.spatial[d];
      }
      T* const rows = to + tap * p.input_channels * width;
      for (uint64_t c = 0; c < width; ++c) {
        for (uint64_t i = begin; i < end; ++i) {
          // A mirrored filter may have taps before the first.
          const uint64_t offset = at + c * p.filter.output_channel + i * p.filter.channel;
          rows[i * width + c] = c < block.channels ? filter[static_cast<ptrdiff_t>(offset)] : T{};
        }
      }
    }
  }
}

void PixelFilter::PackChannels(const std::byte* filter, uint64_t group, const Block& block, uint64_t first,
                               uint64_t count, float* to) const {
  const uint64_t at = SourceOf(group, block);
  if (type_ == DataType::kFloat16) {
    TurnChannels(reinterpret_cast<const uint16_t*>(filter) + at, block, first, count, to);
  } else {
    TurnChannels(reinterpret_cast<const float*>(filter) + at, block, first, count, to);
  }
}

RowsAhead PixelFilter::RowsOf(const std::byte* filter, uint64_t group, const Block& block, uint64_t first,
                              uint64_t count) const {
  const uint64_t width = BitSize(type_) / 8, taps = shape_.Taps();
  const uint64_t at = SourceOf(group, block) + first * taps;
  return {reinterpret_cast<uintptr_t>(filter) + at * width, count * taps * width,
          shape_.filter.output_channel * width, block.channels};
}

// Filters become rows by transposing squares, in the order of the tensor.
template <typename T, typename To>
void PixelFilter::TurnChannels(const T* filter, const Block& block, uint64_t first, uint64_t count,
                               To* to) const {
  constexpr uint64_t kSquare = 16;
  T rows[kTurnedNumbers];
  const uint64_t width = uint64_t{block.vectors} * lanes_, taps = shape_.Taps();
  uint64_t most = kTurnedNumbers / (taps * width);
  if (most > kSquare) most = most / kSquare * kSquare;
  if (block.channels < width) std::fill_n(rows, kTurnedNumbers, T{});
  for (uint64_t done = 0; done < count; done += most) {
    const uint64_t some = std::min(most, count - done);
    TransposeBlock(AsBits(filter + (first + done) * taps), static_cast<int64_t>(shape_.filter.output_channel),
                   some * taps, block.channels, AsBits(rows), static_cast<int64_t>(width),
                   TransposeTo::kTile);
    TurnedRows{some, taps, block.vectors, width, count * width}.Put(rows, to + done * width);
  }
}

}  // namespace anydml
