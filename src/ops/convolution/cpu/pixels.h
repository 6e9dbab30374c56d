// Where the pixels of a convolution are: those of the output, and what their taps see of the input, which is
// read where it is or, where its channels are not neighbours or not FLOAT32, from a copy.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"
#include "ops/convolution/problem.h"

namespace anydml {

inline constexpr uint32_t kMaxPixelTaps = 64;  // in one dimension: a bit for each
inline constexpr uint64_t kMaxBlockPixels = 256;

// Some output pixels, of a group.
struct OutputPixels {
  struct Pixel {
    uint64_t input;   // what the first tap sees; may be outside of it, modulo 2^64
    uint64_t output;  // its first channel
    // Taps of each dimension that see an element of the input; of the edge only.
    uint64_t inside[kMaxSpatial];
  };
  uint32_t count, inner_count, edge_count;
  uint16_t inner[kMaxBlockPixels];  // numbers of those with all taps inside
  uint16_t edge[kMaxBlockPixels];   // of the others
  Pixel at[kMaxBlockPixels];
};

class InputPixels {
 public:
  InputPixels(const ConvolutionShape& shape, DataType type);

  bool copies() const { return copies_; }
  uint64_t CopyFloats() const;
  void Copy(const std::byte* input, Executor* executor, uint32_t workers, float* to) const;

  // From a pixel's first tap.
  uint64_t TapOffset(uint64_t tap) const { return taps_[tap].offset; }
  // Positions of all batches are numbered one after the other.
  void Find(uint64_t first, uint64_t count, uint64_t group, OutputPixels* pixels) const;
  // Those of the edge whose tap is inside of the input; how many.
  uint32_t FindInside(const OutputPixels& pixels, uint64_t tap, uint16_t* list) const;

 private:
  struct Tap {
    uint64_t offset;
    uint8_t at[kMaxSpatial];
  };

  ConvolutionShape shape_;
  DataType type_;
  bool copies_;
  ConvolutionTensor input_;  // that is read by tiles
  std::vector<Tap> taps_;
  uint32_t inner_begin_, inner_end_;  // columns of the output that have all taps inside, in that dimension
};

}  // namespace anydml
