// The kernel of the machine with 32-bit registers.
#pragma once

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/element/cuda/narrow_machine.cuh"

namespace anydml::element_cuda {

// Four blocks per multiprocessor leave 64 registers per thread, which is enough; calls need some more.
template <bool kInLine>
__global__ void __launch_bounds__(kThreads, kInLine ? 4 : 3)
    NarrowKernel(const __grid_constant__ Machine machine) {
  extern __shared__ uint4 shared[];
  WaitForPrevious();
  LetNextStart();
  const NarrowThread thread(machine, reinterpret_cast<std::byte*>(shared), blockIdx.x, threadIdx.x);
  ANYDML_LOOP
  for (uint32_t i = 0; i < machine.inputs; ++i) thread.Load(i);
  WaitForCopies();
  if (machine.tiled) __syncthreads();
  RunSteps<kInLine>(thread);
}

}  // namespace anydml::element_cuda
