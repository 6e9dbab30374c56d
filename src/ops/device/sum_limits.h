// What kernels of products and convolutions do themselves with a sum.
#pragma once

#include <limits>

#include "ops/element/program.h"

namespace anydml {

// RELU and CLIP. NaNs stay what they are.
struct SumLimits {
  float least = -std::numeric_limits<float>::infinity();
  float most = std::numeric_limits<float>::infinity();

  // False if the activation is another one.
  bool Set(const ElementProgram& activation);

  constexpr bool Any() const {
    return least != -std::numeric_limits<float>::infinity() || most != std::numeric_limits<float>::infinity();
  }

  // Of two zeros, +0 is the larger one.
  constexpr float Of(float sum) const {
    const float low = sum < least ? least : sum == 0 && least == 0 ? sum + least : sum;
    return low > most ? most : low == 0 && most == 0 ? -(-low - most) : low;
  }
};

}  // namespace anydml
