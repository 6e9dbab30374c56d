#include "ops/convolution/phases.h"

#include <algorithm>
#include <numeric>

namespace anydml {

bool MakePhase(const ConvolutionWindow& whole, uint32_t number, Phase* phase) {
  const uint64_t period = whole.stride / std::gcd(whole.stride, whole.dilation);
  const uint64_t at = uint64_t{number} + whole.start_padding;
  phase->window = {.input = whole.input,
                   .output = (whole.output - number - 1) / whole.stride + 1,
                   .dilation = whole.dilation / std::gcd(whole.stride, whole.dilation)};
  phase->window.reached = phase->window.output;
  uint64_t first_tap = 0;
  while (first_tap < std::min<uint64_t>(period, whole.taps) &&
         (first_tap * whole.dilation) % whole.stride != at % whole.stride) {
    ++first_tap;
  }
  if (first_tap == std::min<uint64_t>(period, whole.taps)) {  // none
    phase->window.reached = 0;
    return true;
  }
  phase->tap_step = period;
  phase->window.taps = static_cast<uint32_t>((whole.taps - 1 - first_tap) / period + 1);
  phase->last_tap = first_tap + (phase->window.taps - 1) * period;
  const int64_t padding =
      (static_cast<int64_t>(phase->last_tap * whole.dilation) - static_cast<int64_t>(at)) / whole.stride;
  if (padding >= 0) {
    phase->window.start_padding = static_cast<uint32_t>(padding);
    return padding <= UINT32_MAX;
  }
  if (static_cast<uint64_t>(-padding) >= whole.input) {
    phase->window.reached = 0;
  } else {
    phase->first_input = static_cast<uint64_t>(-padding);
    phase->window.input -= static_cast<uint32_t>(-padding);
  }
  return true;
}

}  // namespace anydml
