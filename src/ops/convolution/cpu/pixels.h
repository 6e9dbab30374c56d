// The places of a convolution's pixels: those of the output, and those of the taps in the input, which is
// read in place or, if its channels are not contiguous or not FLOAT32, from a copy.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernel/kernel.h"
#include "ops/convolution/cpu/pixel_ahead.h"
#include "ops/convolution/problem.h"

namespace anydml {

inline constexpr uint32_t kMaxPixelTaps = 64;  // in one dimension: one bit each
inline constexpr uint64_t kMaxBlockPixels = 512;

// Some output pixels of a group.
struct OutputPixels {
  struct Pixel {
    uint64_t input;   // place of the first tap; may be outside the input, modulo 2^64
    uint64_t output;  // place of its first channel
    uint64_t added;   // the same in the added tensor
  };
  // Pixels whose taps inside the input are the same: bit masks of taps, per dimension.
  struct Class {
    std::array<uint64_t, kMaxSpatial> inside;
    uint32_t begin = 0, end = 0;  // range in `order`
  };
  uint32_t count, class_count;
  uint16_t order[kMaxBlockPixels];     // indices of pixels, class by class
  Class classes[kMaxBlockPixels + 1];  // the first has all taps, and may be empty
  Pixel at[kMaxBlockPixels];

  // Copies `channels` numbers of each pixel, FLOAT32 or FLOAT16, between planes that are `stride` apart (a
  // pixel's place in the first one is `output` or `added`) and rows of `width` numbers.
  void LoadPlanes(DataType type, const std::byte* added, uint64_t stride, uint64_t channels, uint64_t width,
                  void* rows) const;
  void StorePlanes(DataType type, const void* rows, uint64_t width, uint64_t channels, uint64_t stride,
                   std::byte* output) const;

  // The index of the class with these taps; a new one if there is none.
  uint16_t ClassOf(const std::array<uint64_t, kMaxSpatial>& inside);
};

class InputPixels {
 public:
  InputPixels(const ConvolutionShape& shape, DataType type, const ConvolutionTensor& added);

  bool copies() const { return copies_; }
  // Whether the copy would have its elements at the same places: then it may be made part by part.
  bool is_in_order() const { return in_order_; }
  // Planes of an image with consecutive positions: those that a block of pixels uses may be copied
  // separately.
  bool has_planes() const { return has_planes_; }
  // Copies some positions; they are numbered across images.
  void CopyPositions(const std::byte* input, uint64_t first, uint64_t count, float* to) const;
  // Their memory; within one image.
  RowsAhead Positions(const std::byte* input, uint64_t first, uint64_t count) const;
  // Whether each pixel sees only its own position.
  bool sees_one() const { return sees_one_; }
  uint64_t CopyFloats() const;
  void Copy(const std::byte* input, Executor* executor, uint32_t workers, float* to) const;

  // From a pixel's first tap.
  uint64_t TapOffset(uint64_t tap) const { return taps_[tap].offset; }
  // Positions are numbered across images.
  void Find(uint64_t first, uint64_t count, uint64_t group, OutputPixels* pixels) const;
  // The range of the input that the pixels' taps see; if it is in order.
  struct Range {
    uint64_t begin = 0, end = 0;
  };
  Range Seen(const OutputPixels& pixels) const;
  // The most that this many pixels may see of an input in order.
  uint64_t MostSeen(uint64_t count) const;
  // Whether the tap is inside the input for pixels of the class.
  bool IsInside(const OutputPixels::Class& pixels, uint64_t tap) const {
    const Tap& t = taps_[tap];
    return ((pixels.inside[0] >> t.at[0]) & (pixels.inside[1] >> t.at[1]) & (pixels.inside[2] >> t.at[2]) &
            1) != 0;
  }

 private:
  template <typename T>
  void CopyPlanes(const T* input, Executor* executor, uint32_t workers, float* to) const;

  struct Tap {
    uint64_t offset;
    uint8_t at[kMaxSpatial];
  };

  ConvolutionShape shape_;
  DataType type_;
  bool copies_, has_planes_, sees_one_, in_order_;
  ConvolutionTensor input_;  // as tiles read it
  ConvolutionTensor added_;
  std::vector<Tap> taps_;
  uint32_t inner_begin_, inner_end_;  // columns of the output that have all taps inside, in that dimension
};

}  // namespace anydml
