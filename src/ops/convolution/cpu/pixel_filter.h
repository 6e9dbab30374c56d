// The filters of a convolution as tiles of pixels read them: for a block of output channels, which is several
// vectors, one step after the other. A step is an input channel of a tap; all channels of a tap come before
// the next tap.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"
#include "ops/convolution/cpu/pixel_ahead.h"
#include "ops/convolution/problem.h"

namespace anydml {

// Whether an input channel's taps (not very many) are contiguous in the filter tensor, followed by the next
// channel's.
bool HasFiltersInOrder(const ConvolutionShape& shape);

class PixelFilter {
 public:
  // A block of a group's output channels.
  struct Block {
    uint64_t channel;        // its first channel
    uint64_t vector;         // its first vector
    uint32_t vectors;        // the last of which may be partial
    uint64_t channels;       // those that exist
    uint32_t last_channels;  // in the last vector; 0: all
  };

  // Blocks of up to `max_vectors` vectors.
  PixelFilter(const ConvolutionShape& shape, DataType type, uint32_t lanes, uint32_t max_vectors);

  uint64_t bytes() const;
  uint32_t lanes() const { return lanes_; }
  uint64_t vectors() const { return vectors_; }  // per group
  uint64_t blocks() const { return blocks_; }
  Block BlockOf(uint64_t number) const;

  // Packs all of a filter tensor; elements are not converted.
  void Pack(const std::byte* filter, Executor* executor, uint32_t threads, std::byte* to) const;

  // Packs some input channels of a block, all taps, as FLOAT32; the filter must be in order.
  void PackChannels(const std::byte* filter, uint64_t group, const Block& block, uint64_t first,
                    uint64_t count, float* to) const;
  // The memory that PackChannels reads.
  RowsAhead RowsOf(const std::byte* filter, uint64_t group, const Block& block, uint64_t first,
                   uint64_t count) const;

  // The offset of all steps of a block, in elements from Pack's `to`.
  uint64_t OffsetOf(uint64_t group, const Block& block) const {
    return (group * vectors_ + block.vector) * lanes_ * shape_.Steps();
  }

 private:
  uint64_t SourceOf(uint64_t group, const Block& block) const {
    return shape_.filter.Matrix(0, group) + block.channel * shape_.filter.output_channel;
  }
  template <typename T>
  void PackBlock(const T* filter, uint64_t group, const Block& block, T* to) const;
  template <typename T, typename To>
  void TurnChannels(const T* filter, const Block& block, uint64_t first, uint64_t count, To* to) const;

  ConvolutionShape shape_;
  DataType type_;
  uint32_t lanes_;
  bool in_order_;
  uint64_t vectors_, blocks_;
};

}  // namespace anydml
