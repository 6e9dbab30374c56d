#include "ops/mvn/problem.h"

namespace anydml {

std::unique_ptr<const Kernel> CreateMvnSteps(const MvnProblem& problem, const LowerContext& context,
                                             std::string* why_not) {
  return CreateSteps(problem.steps, context, why_not);
}

}  // namespace anydml
