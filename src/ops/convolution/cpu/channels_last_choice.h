// Which convolutions tiles of pixels can do, and in how many pieces.
#pragma once

#include <string>

#include "ops/convolution/cpu/pixel_steps.h"
#include "ops/convolution/problem.h"

namespace anydml {

// Empty if they can.
std::string WhyNotChannelsLast(const ConvolutionProblem& problem);

// Whether filters are packed piece by piece just before use, rather than all at the beginning: if few pixels
// use each piece.
bool TurnsPieces(const ConvolutionProblem& problem);

// In pieces whose weights stay in L2.
PixelSteps ChannelsLastSteps(const ConvolutionProblem& problem);

// Whether incomplete sums are kept in the output.
bool ChannelsLastKeepsSums(const ConvolutionProblem& problem);

}  // namespace anydml
