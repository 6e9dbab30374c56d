// What comes after a convolution's sums on a device.
#pragma once

#include <limits>

#include "ops/convolution/problem.h"

namespace anydml {

// What kernels do themselves with a sum: RELU and CLIP. NaNs stay what they are.
struct SumLimits {
  float least = -std::numeric_limits<float>::infinity();
  float most = std::numeric_limits<float>::infinity();

  // False where the activation is another one.
  bool Set(const ElementProgram& activation);

  constexpr bool Any() const {
    return least != -std::numeric_limits<float>::infinity() || most != std::numeric_limits<float>::infinity();
  }

  // Of two zeros +0 is the larger one.
  constexpr float Of(float sum) const {
    const float low = sum < least ? least : sum == 0 && least == 0 ? sum + least : sum;
    return low > most ? most : low == 0 && most == 0 ? -(-low - most) : low;
  }
};

// The activation of FLOAT32 sums, into the output.
ElementProblem ConvolutionActivation(const ConvolutionProblem& problem, const ConvolutionTensor& sums);

// An output without gaps; `channels_last`: a position's channels, of all groups, are neighbours.
ConvolutionTensor PackedOutput(const ConvolutionShape& shape, bool channels_last = false);

}  // namespace anydml
