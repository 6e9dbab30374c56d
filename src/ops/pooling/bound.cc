#include "ops/pooling/problem.h"

namespace anydml {

// Roots, and powers other than squares, are computed in double precision and rounded at the end.
Exactness PoolingBound(const PoolingProblem& problem) {
  const bool is_power = problem.function == PoolingFunction::kLp && problem.p > 2;
  return is_power ? Exactness{.float32_ulps = 2, .float16_ulps = 1} : Exactness{};
}

}  // namespace anydml
