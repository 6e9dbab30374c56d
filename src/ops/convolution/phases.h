// Backward (transposed) convolutions. Outputs whose index has the same remainder modulo the stride form a
// phase and see the same taps: a phase is an ordinary convolution of stride 1 with its own part of the
// filter, whose results have gaps for the other phases.
#pragma once

#include "ops/convolution/problem.h"

namespace anydml {

// One spatial dimension. Output at * stride + phase sees input at - start_padding + tap * dilation.
struct Phase {
  ConvolutionWindow window;
  uint64_t first_input = 0;  // earlier inputs are not seen
  uint64_t last_tap = 0;     // of the whole filter; first in this phase
  uint64_t tap_step = 1;     // distance between taps in the whole filter, in reverse
};

// False if the window's numbers are too large for a phase. If no input is seen, `reached` is 0.
bool MakePhase(const ConvolutionWindow& whole, uint32_t number, Phase* phase);

}  // namespace anydml
