// What comes after a convolution's sums on a device.
#pragma once

#include "ops/convolution/problem.h"
#include "ops/device/sum_limits.h"

namespace anydml {

// The activation of FLOAT32 sums, into the output.
ElementProblem ConvolutionActivation(const ConvolutionProblem& problem, const ConvolutionTensor& sums);

// An output without gaps; `channels_last`: a position's channels, of all groups, are neighbours.
ConvolutionTensor PackedOutput(const ConvolutionShape& shape, bool channels_last = false);

}  // namespace anydml
