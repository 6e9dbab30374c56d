// All phases of a backward convolution in one product of windows with filters.
#pragma once

#include <algorithm>

#include "ops/convolution/phases.h"
#include "ops/device/nest.h"

namespace anydml {

inline constexpr uint32_t kMostPhases = 8;  // per dimension

// A forward convolution has one phase, which is not used.
struct DevicePhases {
  // One dimension. Taps from `taps` on belong to other phases; its own are in reverse order.
  struct One {
    int32_t start_padding;
    uint32_t taps, last_tap;
  };

  bool are_used = false;
  FastDivisor all, counts[kMaxSpatial];
  One of[kMaxSpatial][kMostPhases] = {};
  uint32_t tap_steps[kMaxSpatial] = {};

  __device__ void Split(uint32_t phase, uint32_t (&numbers)[kMaxSpatial]) const {
#pragma unroll
    for (int d = kMaxSpatial - 1; d >= 0; --d) phase = counts[d].Divide(phase, &numbers[d]);
  }
};

// Why it is impossible; empty on success. `product` becomes the forward convolution that covers all phases:
// with the largest numbers of outputs and taps.
inline std::string MakeDevicePhases(const ConvolutionShape& whole, DevicePhases* phases,
                                    ConvolutionShape* product) {
  constexpr int64_t kFar = 1 << 29;
  *product = whole;
  product->backward = false;
  phases->are_used = true;
  uint32_t all = 1;
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    const ConvolutionWindow& window = whole.windows[d];
    const uint32_t count = std::min(window.stride, window.output);
    if (count > kMostPhases) {
      return StrCat("it is for strides of up to ", kMostPhases, "; there is one of ", window.stride);
    }
    phases->counts[d] = FastDivisor(count);
    all *= count;
    ConvolutionWindow& widest = product->windows[d];
    widest.taps = 1;
    for (uint32_t number = 0; number < count; ++number) {
      Phase phase;
      const bool fits = MakePhase(window, number, &phase);
      const int64_t padding = int64_t{phase.window.start_padding} - static_cast<int64_t>(phase.first_input);
      const int64_t reach = int64_t{phase.window.taps} * phase.window.dilation;
      if (!fits || std::max(padding, reach) >= kFar || window.output >= kFar || window.input >= kFar) {
        return "its taps reach too far";
      }
      DevicePhases::One& one = phases->of[d][number];
      one.start_padding = static_cast<int32_t>(padding);
      one.taps = phase.window.reached == 0 ? 0 : phase.window.taps;
      one.last_tap = static_cast<uint32_t>(phase.last_tap);
      widest.taps = std::max(widest.taps, one.taps);
      widest.dilation = phase.window.dilation;
      if (one.taps != 0) phases->tap_steps[d] = static_cast<uint32_t>(phase.tap_step);
      if (number == 0) widest.output = phase.window.output;
    }
    widest.reached = widest.output;
    widest.stride = 1;
    widest.start_padding = 0;  // each phase has its own
  }
  phases->all = FastDivisor(all);
  return "";
}

}  // namespace anydml
