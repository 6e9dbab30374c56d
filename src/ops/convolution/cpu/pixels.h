// Where the pixels of a convolution are: those of the output, and what their taps see of the input, which is
// read where it is or, where its channels are not neighbours or not FLOAT32, from a copy.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernel/kernel.h"
#include "ops/convolution/cpu/pixel_ahead.h"
#include "ops/convolution/problem.h"

namespace anydml {

inline constexpr uint32_t kMaxPixelTaps = 64;  // in one dimension: a bit for each
inline constexpr uint64_t kMaxBlockPixels = 512;

// Some output pixels, of a group.
struct OutputPixels {
  struct Pixel {
    uint64_t input;   // what the first tap sees; may be outside of it, modulo 2^64
    uint64_t output;  // its first channel
    uint64_t added;   // the same, of what is added
  };
  // Those whose taps see elements of the input at the same places: bits of taps, of each dimension.
  struct Class {
    std::array<uint64_t, kMaxSpatial> inside;
    uint32_t begin = 0, end = 0;  // in `order`
  };
  uint32_t count, class_count;
  uint16_t order[kMaxBlockPixels];     // pixels' numbers, class by class
  Class classes[kMaxBlockPixels + 1];  // the first has all taps, and perhaps no pixels
  Pixel at[kMaxBlockPixels];

  // `channels` numbers of each pixel, FLOAT32 or FLOAT16, between planes that are `stride` apart (`output` or
  // `added` of the first one is where a pixel is in it) and rows of `width` numbers.
  void LoadPlanes(DataType type, const std::byte* added, uint64_t stride, uint64_t channels, uint64_t width,
                  void* rows) const;
  void StorePlanes(DataType type, const void* rows, uint64_t width, uint64_t channels, uint64_t stride,
                   std::byte* output) const;

  // Its number; it is a new one where none has these taps.
  uint16_t ClassOf(const std::array<uint64_t, kMaxSpatial>& inside);
};

class InputPixels {
 public:
  InputPixels(const ConvolutionShape& shape, DataType type, const ConvolutionTensor& added);

  bool copies() const { return copies_; }
  // Whether the copy would have its elements at the same places: then it may be made part by part.
  bool is_in_order() const { return in_order_; }
  // Planes of an image whose positions follow each other: those that a block of pixels sees may be copied by
  // themselves.
  bool has_planes() const { return has_planes_; }
  // Some positions of them; those of all images are numbered one after the other.
  void CopyPositions(const std::byte* input, uint64_t first, uint64_t count, float* to) const;
  // Where they are; those of one image.
  RowsAhead Positions(const std::byte* input, uint64_t first, uint64_t count) const;
  // Whether each pixel sees its own position only.
  bool sees_one() const { return sees_one_; }
  uint64_t CopyFloats() const;
  void Copy(const std::byte* input, Executor* executor, uint32_t workers, float* to) const;

  // From a pixel's first tap.
  uint64_t TapOffset(uint64_t tap) const { return taps_[tap].offset; }
  // Positions of all batches are numbered one after the other.
  void Find(uint64_t first, uint64_t count, uint64_t group, OutputPixels* pixels) const;
  // From the first to behind the last place of the input that taps of the pixels see; where it is in order.
  struct Range {
    uint64_t begin = 0, end = 0;
  };
  Range Seen(const OutputPixels& pixels) const;
  // What so many pixels may see, at most, of an input in order.
  uint64_t MostSeen(uint64_t count) const;
  // Whether the tap sees elements of the input, for pixels of the class.
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
  ConvolutionTensor input_;  // that is read by tiles
  ConvolutionTensor added_;
  std::vector<Tap> taps_;
  uint32_t inner_begin_, inner_end_;  // columns of the output that have all taps inside, in that dimension
};

}  // namespace anydml
