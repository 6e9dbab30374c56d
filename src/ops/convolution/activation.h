// What follows a convolution's sums on a device.
#pragma once

#include "ops/convolution/problem.h"
#include "ops/device/sum_limits.h"

namespace anydml {

// The activation of FLOAT32 sums, into the output.
ElementProblem ConvolutionActivation(const ConvolutionProblem& problem, const ConvolutionTensor& sums);

// A packed output; `channels_last`: the channels of all groups are contiguous per position.
ConvolutionTensor PackedOutput(const ConvolutionShape& shape, bool channels_last = false);

}  // namespace anydml
