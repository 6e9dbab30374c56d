// The innermost loop of a depthwise convolution.
#pragma once

#include <cstdint>

namespace anydml {

// The input of a band's outputs: tap t of the output in column x of row y is numbers[offsets[t] + y * pitch +
// x], and kDepthwiseSlack more numbers are readable after the last one.
struct DepthwiseBand {
  const float* numbers;
  uint64_t pitch;
  const uint64_t* offsets;
  const float* weights;
  uint32_t taps;
  float start;  // initial value of sums
  // Clamps sums to [low, high].
  bool clips = false;
  float low = 0, high = 0;
};
inline constexpr uint64_t kDepthwiseSlack = 64;  // a vector of 2048 bits

// Writes sums[y * sums_pitch + x] for x below `columns`, and nothing else. If sums are clipped, returns
// whether some may be NaN.
bool AddTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* sums, uint64_t sums_pitch);

}  // namespace anydml
