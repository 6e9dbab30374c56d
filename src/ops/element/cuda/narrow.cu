#include "ops/element/cuda/narrow_kernel.cuh"

namespace anydml::element_cuda {

void LaunchNarrow(const MachinePlan& plan, const Machine& machine, void* stream) {
  KernelChain(stream, /*all_wait=*/true)
      .Launch(NarrowKernel<true>, plan.blocks, kThreads, machine, plan.shared_bytes);
}

}  // namespace anydml::element_cuda
