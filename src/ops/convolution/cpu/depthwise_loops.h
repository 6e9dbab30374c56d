// The innermost loop of a depthwise convolution.
#pragma once

#include <cstdint>

namespace anydml {

// sums[i] = start + the sum over taps t of weights[t] * numbers[offsets[t] + i], for i below `count` and some
// more: up to kDepthwiseSlack, which both memories must have.
void AddTaps(const float* numbers, const uint64_t* offsets, const float* weights, uint32_t taps, float start,
             float* sums, uint64_t count);

inline constexpr uint64_t kDepthwiseSlack = uint64_t{4} * 64;  // four vectors of 2048 bits

}  // namespace anydml
