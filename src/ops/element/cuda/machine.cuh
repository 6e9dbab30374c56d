// The kernels that run element programs (element/plan.h).
#pragma once

#include <cuda_runtime.h>

#include "ops/element/plan.h"

namespace anydml::element_cuda {

using namespace element_device;

// A program's kernel: 32-bit registers, a variant of it for long functions (narrow_machine.cuh), or 64-bit
// registers.
bool HasLongFunctions(const Machine& machine);
bool IsLongFunction(const Instruction& instruction);
void LaunchNarrow(const MachinePlan& plan, const Machine& machine, void* stream);
void LaunchNarrowWithLongFunctions(const MachinePlan& plan, const Machine& machine, void* stream);
void LaunchWide(const MachinePlan& plan, const Machine& machine, void* stream);

}  // namespace anydml::element_cuda
