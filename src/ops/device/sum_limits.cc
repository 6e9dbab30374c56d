#include "ops/device/sum_limits.h"

namespace anydml {

bool SumLimits::Set(const ElementProgram& activation) {
  if (activation.instructions.empty()) return true;
  const Instruction& first = activation.instructions[0];
  if (activation.instructions.size() > 1 || first.target != 0 || first.sources[0] != 0) return false;
  if (first.function == ElementFunction::kRelu) {
    least = 0;
    return true;
  }
  if (first.function != ElementFunction::kClip || !(FloatParameter(first, 0) <= FloatParameter(first, 1))) {
    return false;
  }
  least = FloatParameter(first, 0);
  most = FloatParameter(first, 1);
  return true;
}

}  // namespace anydml
