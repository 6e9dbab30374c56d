// Which convolutions tiles of pixels can do, and in how many pieces.
#pragma once

#include <string>

#include "ops/convolution/cpu/pixel_steps.h"
#include "ops/convolution/problem.h"

namespace anydml {

// Empty: they can.
std::string WhyNotChannelsLast(const ConvolutionProblem& problem);

// Whether filters are brought into the order of tiles piece by piece, where tiles read them then, rather than
// all of them before: few pixels see each.
bool TurnsPieces(const ConvolutionProblem& problem);

// In pieces whose weights stay in the second-level cache.
PixelSteps ChannelsLastSteps(const ConvolutionProblem& problem);

// Whether sums that are not complete are kept where the output is.
bool ChannelsLastKeepsSums(const ConvolutionProblem& problem);

}  // namespace anydml
