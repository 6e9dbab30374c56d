#include "ops/integer_product/cpu/dot_kernel.h"

#include <initializer_list>

namespace anydml {

const DotKernels* FindDotKernels() {
  for (auto* const find : {&FindNeonDot, &FindAmxDot, &FindAvx512Dot, &FindAvxVnniDot, &FindAvx2Dot}) {
    if (const DotKernels* const kernels = find()) return kernels;
  }
  return nullptr;
}

}  // namespace anydml
