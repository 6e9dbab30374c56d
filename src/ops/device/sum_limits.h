// The activations that kernels of products and convolutions apply to a sum themselves.
#pragma once

#include <limits>

#include "ops/element/program.h"

namespace anydml {

// RELU and CLIP. NaNs are kept.
struct SumLimits {
  float least = -std::numeric_limits<float>::infinity();
  float most = std::numeric_limits<float>::infinity();

  // False for other activations.
  bool Set(const ElementProgram& activation);

  constexpr bool Any() const {
    return least != -std::numeric_limits<float>::infinity() || most != std::numeric_limits<float>::infinity();
  }

  // +0 is larger than -0.
  constexpr float Of(float sum) const {
    const float low = sum < least ? least : sum == 0 && least == 0 ? sum + least : sum;
    return low > most ? most : low == 0 && most == 0 ? -(-low - most) : low;
  }
};

}  // namespace anydml
