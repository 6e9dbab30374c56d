// Which convolutions tiles of pixels can do, and in how many pieces.
#pragma once

#include <string>

#include "ops/convolution/problem.h"

namespace anydml {

// Empty: they can.
std::string WhyNotChannelsLast(const ConvolutionProblem& problem);

// Steps of a piece, at most, whose weights stay in the second-level cache.
uint64_t MostStepsOfPiece(const ConvolutionShape& shape);

// Whether sums that are not complete are kept where the output is.
bool ChannelsLastKeepsSums(const ConvolutionProblem& problem);

}  // namespace anydml
