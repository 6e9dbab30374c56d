#include "ops/recurrent/problem.h"

namespace anydml {

// A sum of n products is off by n * 2^-24 times the sum of the magnitudes (contract): 4 for inputs, a state
// and biases up to 1 and weights whose rows sum up to 1. Such weights hand the state's error on to the next
// step as it is, so that errors of steps add up; larger ones magnify it, whoever computes.
Exactness RecurrentBound(const RecurrentProblem& problem) {
  constexpr double kMagnitudes = 4;
  constexpr uint64_t kFurtherTerms = 8;  // biases, a peephole, and the units in the last place of functions
  const auto terms = static_cast<double>(problem.inputs + problem.units + kFurtherTerms);
  Exactness exactness;
  exactness.absolute = 0x1p-24 * terms * kMagnitudes * static_cast<double>(problem.steps);
  exactness.relative = exactness.absolute;  // where functions without a limit let the state grow
  exactness.float16_ulps = 1;
  return exactness;
}

}  // namespace anydml
