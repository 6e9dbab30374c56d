#include "ops/element/problem.h"
#include "ops/implementation_list.h"

namespace anydml {

// The reference rounds once where other implementations compute in FLOAT32.
Exactness ElementBound(const ElementProblem& problem) {
  const uint32_t ulps = problem.program.ulps();
  return {.float32_ulps = ulps, .float16_ulps = ulps == 0 ? 0u : 1u};
}

}  // namespace anydml
