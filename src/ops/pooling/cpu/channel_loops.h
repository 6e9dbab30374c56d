// Windows over many contiguous channels: vectors of channels, which combine all taps in registers.
#pragma once

#include <cstdint>

#include "base/data_type.h"

namespace anydml::pooling {

// Windows with the same number of taps, at a fixed distance from each other.
struct ChannelTaps {
  const void* const* taps;  // of the first window, their first channels: columns of rows
  uint32_t columns, rows;
  uint64_t channels;
  uint64_t windows;
  uint64_t input_step, output_step;  // elements between consecutive windows
};

struct ChannelLoops {
  uint32_t least = 0;  // minimum number of channels
  // Computes the largest elements. Returns whether there may be a NaN, or a -0 that hides a +0, in any
  // window: then the results are not valid.
  bool (*max)(const ChannelTaps& taps, void* output) = nullptr;
  // Sums each column, then the columns' sums; divides by `divisor`.
  void (*average)(const ChannelTaps& taps, float divisor, float* output) = nullptr;
};

// Loops take at most this many taps.
inline constexpr uint64_t kMostChannelTaps = 256;

// For FLOAT32 and FLOAT16 if there are vectors; otherwise null.
ChannelLoops FindChannelLoops(DataType type);

}  // namespace anydml::pooling
