// Filters of one channel, of which many are neighbours in memory: vectors are channels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml {

inline constexpr uint32_t kDepthwisePixels = 4;  // that are done together

struct DepthwiseTap {
  uint64_t offset;       // of its input, from that of the pixel, in elements, modulo 2^64
  const float* weights;  // of the first channel
};

// Neighbouring output pixels that have the same taps.
struct DepthwisePixels {
  const void* input;  // FLOAT32, or FLOAT16 where `halves`
  bool halves;
  uint64_t input_stride;  // from pixel to pixel
  float* sums;
  uint64_t sums_stride;
  const DepthwiseTap* taps;
  uint32_t tap_count;
  bool threes;  // taps are threes of neighbours, as far from each other as pixels are
  uint64_t channels;
  const float* start;  // what sums begin with
  bool clips;          // at the end: not below `low` nor above `high`, NaNs become the usual one
  float low, high;
};

// Of one pixel, or of kDepthwisePixels.
void AddDepthwisePixel(const DepthwisePixels& pixels);
void AddDepthwisePixels(const DepthwisePixels& pixels);

}  // namespace anydml
