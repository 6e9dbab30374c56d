#include "ops/convolution/cpu/pixel_filter.h"

#include <algorithm>
#include <cstring>

#include "ops/common/parallel.h"
#include "ops/common/transpose_block.h"
#include "ops/element/cpu/rows.h"

namespace anydml {
namespace {

const uint32_t* AsBits(const float* numbers) { return reinterpret_cast<const uint32_t*>(numbers); }
const uint16_t* AsBits(const uint16_t* numbers) { return numbers; }
uint32_t* AsBits(float* numbers) { return reinterpret_cast<uint32_t*>(numbers); }
uint16_t* AsBits(uint16_t* numbers) { return numbers; }

void CopyRow(const float* from, uint64_t count, float* to) { std::memcpy(to, from, count * sizeof(float)); }
void CopyRow(const uint16_t* from, uint64_t count, uint16_t* to) {
  std::memcpy(to, from, count * sizeof(uint16_t));
}
void CopyRow(const uint16_t* from, uint64_t count, float* to) { HalvesToFloats(from, to, count); }

}  // namespace

bool HasFiltersInOrder(const ConvolutionShape& shape) {
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

// Nearly equal ones: a tile of one vector is a poor one.
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
          // Of a mirrored filter taps may be before the first.
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

// Filters become rows by squares, in the order of the tensor, from which each row goes to its tap's.
template <typename T, typename To>
void PixelFilter::TurnChannels(const T* filter, const Block& block, uint64_t first, uint64_t count,
                               To* to) const {
  constexpr uint64_t kNumbers = 4096;
  T rows[kNumbers];
  const uint64_t width = uint64_t{block.vectors} * lanes_, taps = shape_.Taps(), most = kNumbers / width;
  if (block.channels < width) std::fill_n(rows, kNumbers, T{});
  uint64_t tap = 0, channel = 0;
  for (uint64_t done = 0; done < count * taps;) {
    const uint64_t some = std::min(most, count * taps - done);
    TransposeBlock(AsBits(filter + first * taps + done), static_cast<int64_t>(shape_.filter.output_channel),
                   some, block.channels, AsBits(rows), static_cast<int64_t>(width), TransposeTo::kTile);
    for (uint64_t r = 0; r < some; ++r) {
      CopyRow(rows + r * width, width, to + (tap * count + channel) * width);
      if (++tap == taps) tap = 0, ++channel;
    }
    done += some;
  }
}

}  // namespace anydml
