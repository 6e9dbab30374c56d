#include "ops/convolution/cpu/pixel_filter.h"

#include <algorithm>

#include "ops/common/parallel.h"

namespace anydml {

PixelFilter::PixelFilter(const ConvolutionShape& shape, DataType type, uint32_t lanes, uint32_t max_vectors)
    : shape_(shape), type_(type), lanes_(lanes) {
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

}  // namespace anydml
