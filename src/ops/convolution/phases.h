// Backward (transposed) convolutions. Outputs whose index has the same remainder, divided by the stride, see
// the same taps: those of a phase are an ordinary convolution of stride 1 with its own part of the filter,
// whose result has gaps for the other phases.
#pragma once

#include "ops/convolution/problem.h"

namespace anydml {

// One spatial dimension. Output at * stride + phase sees input at - start_padding + tap * dilation.
struct Phase {
  ConvolutionWindow window;
  uint64_t first_input = 0;  // those before it are not seen
  uint64_t last_tap = 0;     // of the whole filter; comes first here
  uint64_t tap_step = 1;     // taps of the whole filter from one to the one before it
};

// Whether the numbers of the window are small enough for one. Where no input is seen, `reached` is 0.
bool MakePhase(const ConvolutionWindow& whole, uint32_t number, Phase* phase);

}  // namespace anydml
