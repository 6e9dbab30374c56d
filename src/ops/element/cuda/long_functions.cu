#include "ops/element/cuda/narrow_kernel.cuh"

namespace anydml::element_cuda {

bool IsLongFunction(const Instruction& instruction) { return IsLong(instruction.function, instruction.type); }

bool HasLongFunctions(const Machine& machine) {
  for (uint32_t s = 0; s < machine.steps_end; ++s) {
    if (IsLongFunction(machine.steps[s].instruction)) return true;
  }
  return false;
}

void LaunchNarrowWithLongFunctions(const MachinePlan& plan, const Machine& machine, void* stream) {
  KernelChain(stream, /*all_wait=*/true)
      .Launch(NarrowKernel<false>, plan.blocks, kThreads, machine, plan.shared_bytes);
}

}  // namespace anydml::element_cuda
