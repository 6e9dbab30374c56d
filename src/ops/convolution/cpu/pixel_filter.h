// The filters of a convolution as tiles of pixels read them: for a block of output channels, which is some
// vectors, one step after the other. A step is an input channel of a tap; the channels of a tap come first.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"
#include "ops/convolution/cpu/pixel_ahead.h"
#include "ops/convolution/problem.h"

namespace anydml {

// Whether the taps of an input channel, of which there are not very many, are neighbours in the filter
// tensor, and so are channels.
bool HasFiltersInOrder(const ConvolutionShape& shape);

class PixelFilter {
 public:
  // Of a group.
  struct Block {
    uint64_t channel;        // its first
    uint64_t vector;         // its first
    uint32_t vectors;        // the last of which may not be whole
    uint64_t channels;       // those that are there
    uint32_t last_channels;  // of the last vector; 0: all
  };

  // Blocks of up to `max_vectors` vectors.
  PixelFilter(const ConvolutionShape& shape, DataType type, uint32_t lanes, uint32_t max_vectors);

  uint64_t bytes() const;
  uint32_t lanes() const { return lanes_; }
  uint64_t vectors() const { return vectors_; }  // of a group
  uint64_t blocks() const { return blocks_; }
  Block BlockOf(uint64_t number) const;

  // From a filter tensor, all of it; elements stay what they are.
  void Pack(const std::byte* filter, Executor* executor, uint32_t threads, std::byte* to) const;

  // Some input channels of a block, all taps, as FLOAT32; of a filter in order.
  void PackChannels(const std::byte* filter, uint64_t group, const Block& block, uint64_t first,
                    uint64_t count, float* to) const;
  // Where PackChannels reads them.
  RowsAhead RowsOf(const std::byte* filter, uint64_t group, const Block& block, uint64_t first,
                   uint64_t count) const;

  // Of all steps, in elements from where Pack put them.
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
