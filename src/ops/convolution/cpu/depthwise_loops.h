// The innermost loop of a depthwise convolution.
#pragma once

#include <cstdint>

namespace anydml {

// What a band's outputs are made of: taps t of the output in column x of row y is numbers[offsets[t] + y *
// pitch + x], and kDepthwiseSlack more can be read behind the last one.
struct DepthwiseBand {
  const float* numbers;
  uint64_t pitch;
  const uint64_t* offsets;
  const float* weights;
  uint32_t taps;
  float start;  // what is added to
  // Sums are not below `low` nor above `high`.
  bool clips = false;
  float low = 0, high = 0;
};
inline constexpr uint64_t kDepthwiseSlack = 64;  // a vector of 2048 bits

// sums[y * sums_pitch + x], for x below `columns`. Nothing else is written. Where sums are clipped, whether
// some may be NaN.
bool AddTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* sums, uint64_t sums_pitch);

}  // namespace anydml
