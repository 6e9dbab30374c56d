#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/element/cuda/wide_machine.cuh"

namespace anydml::element_cuda {
namespace {

__global__ void __launch_bounds__(kThreads, 3) WideKernel(const __grid_constant__ Machine machine) {
  extern __shared__ uint4 shared[];
  WaitForPrevious();
  LetNextStart();
  const WideThread thread(machine, reinterpret_cast<std::byte*>(shared), blockIdx.x, threadIdx.x);
  ANYDML_LOOP
  for (uint32_t i = 0; i < machine.inputs; ++i) thread.Load(i);
  WaitForCopies();
  if (machine.tiled) __syncthreads();
  RunSteps(thread);
}

}  // namespace

void LaunchWide(const MachinePlan& plan, const Machine& machine, void* stream) {
  KernelChain(stream, /*all_wait=*/true)
      .Launch(WideKernel, plan.blocks, kThreads, machine, plan.shared_bytes);
}

}  // namespace anydml::element_cuda
