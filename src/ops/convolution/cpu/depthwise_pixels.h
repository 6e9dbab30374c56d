// Filters of one channel with contiguous channels: vectors run over channels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml {

inline constexpr uint32_t kDepthwisePixels = 4;  // pixels that are processed together

struct DepthwiseTap {
  uint64_t offset;       // of the tap's input from the pixel's, in elements, modulo 2^64
  const float* weights;  // of the first channel
};

// Neighbouring output pixels with the same taps.
struct DepthwisePixels {
  const void* input;  // FLOAT32, or FLOAT16 where `halves`
  bool halves;
  uint64_t input_stride;  // from pixel to pixel
  float* sums;
  uint64_t sums_stride;
  const DepthwiseTap* taps;
  uint32_t tap_count;
  bool threes;  // taps are rows of three, with the distance between pixels
  uint64_t channels;
  const float* start;  // initial values of sums
  bool clips;          // clamp the results to [low, high] and make NaNs canonical
  float low, high;
};

// For one pixel, and for kDepthwisePixels.
void AddDepthwisePixel(const DepthwisePixels& pixels);
void AddDepthwisePixels(const DepthwisePixels& pixels);

}  // namespace anydml
