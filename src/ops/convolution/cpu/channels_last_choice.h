// Which convolutions tiles of pixels can do.
#pragma once

#include <string>

#include "ops/convolution/problem.h"

namespace anydml {

// Empty: they can.
std::string WhyNotChannelsLast(const ConvolutionProblem& problem);

}  // namespace anydml
