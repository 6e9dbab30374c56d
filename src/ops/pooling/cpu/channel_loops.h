// Windows of many channels that are side by side: vectors of channels, which meet all taps in registers.
#pragma once

#include <cstdint>

#include "base/data_type.h"

namespace anydml::pooling {

// Windows with as many taps, each as far from the last one.
struct ChannelTaps {
  const void* const* taps;  // of the first window, their first channels: columns of rows
  uint32_t columns, rows;
  uint64_t channels;
  uint64_t windows;
  uint64_t input_step, output_step;  // elements from a window to the next
};

struct ChannelLoops {
  uint32_t least = 0;  // channels
  // The largest elements. Whether there may be a NaN, or a -0 that hides +0, among any: then they are not
  // known.
  bool (*max)(const ChannelTaps& taps, void* output) = nullptr;
  // The columns are added up, then their sums; divided by `divisor`.
  void (*average)(const ChannelTaps& taps, float divisor, float* output) = nullptr;
};

// More taps are too many.
inline constexpr uint64_t kMostChannelTaps = 256;

// For FLOAT32 and FLOAT16, where there are vectors; otherwise null.
ChannelLoops FindChannelLoops(DataType type);

}  // namespace anydml::pooling
