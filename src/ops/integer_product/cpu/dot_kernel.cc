#include "ops/integer_product/cpu/dot_kernel.h"

#include <atomic>
#include <initializer_list>

namespace anydml {
namespace {

std::atomic<const DotKernels*> kernels_of_tests = nullptr;

}  // namespace

const DotKernels* FindDotKernels() {
  if (const DotKernels* const kernels = kernels_of_tests.load()) return kernels;
  for (auto* const find :
       {&FindI8mmDot, &FindNeonDot, &FindAmxDot, &FindAvx512Dot, &FindAvxVnniDot, &FindAvx2Dot}) {
    if (const DotKernels* const kernels = find()) return kernels;
  }
  return nullptr;
}

void UseDotKernels(const DotKernels* kernels) { kernels_of_tests = kernels; }

}  // namespace anydml
