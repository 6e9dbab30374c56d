#include <algorithm>

#include "ops/convolution/problem.h"

namespace anydml {

// For inputs and filters up to 1: see GEMM's bound.
Exactness ConvolutionBound(const ConvolutionProblem& problem) {
  Exactness exactness;
  const auto k = static_cast<double>(problem.shape.Steps());
  exactness.absolute = 0x1p-24 * (k * k + 2);
  exactness.float32_ulps = 8 + problem.activation.ulps();
  exactness.float16_ulps = 1;
  return exactness;
}

}  // namespace anydml
