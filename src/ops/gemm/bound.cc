#include "ops/gemm/problem.h"

namespace anydml {

// A blocked sum of products of numbers up to 1 has an error far below this (contract: k * 2^-24 times the sum
// of the magnitudes).
Exactness GemmBound(const GemmProblem& problem) {
  Exactness exactness;
  const auto k = static_cast<double>(problem.k);
  exactness.absolute = 0x1p-24 * k * k * (problem.alpha < 0 ? -problem.alpha : problem.alpha);
  exactness.float32_ulps = 8 + problem.activation.ulps();
  exactness.float16_ulps = 1;
  return exactness;
}

}  // namespace anydml
