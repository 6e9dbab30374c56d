#include <cmath>

#include "ops/attention/problem.h"

namespace anydml {

// For numbers up to 1 with biases up to 1: the error of the sums of both products (contract: their length *
// 2^-24 times the sum of the magnitudes), where the absolute error of a logit becomes the relative one of its
// power. Values that are added to logits cost their last digits, unless they make powers vanish.
Exactness AttentionBound(const AttentionProblem& problem) {
  const auto size = static_cast<double>(problem.key.columns);
  const auto keys = static_cast<double>(problem.keys);
  const double filter = problem.mask.value < -64 ? 0 : std::abs(double{problem.mask.value});
  const double logit = 4 * size * size * std::abs(double{problem.scale}) + 2 + filter;
  Exactness exactness;
  exactness.absolute = 0x1p-24 * (4 * logit + 4 * keys + 16);
  exactness.float32_ulps = 8;
  exactness.float16_ulps = 1;
  return exactness;
}

}  // namespace anydml
