#include "ops/module.h"
#include "ops/scatter/problem.h"

namespace anydml {

ANYDML_MODULE_EXPORT const Kernel* AnyDmlCreateScatterCuda(const ScatterProblem&, std::string* why_not) {
  *why_not = "not written yet";
  return nullptr;
}

}  // namespace anydml
