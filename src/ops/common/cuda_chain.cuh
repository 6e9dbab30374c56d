// Kernels of one operator that follow each other closely: the next one starts while the last
// blocks of the one before still run, and waits where it needs their results (programmatic
// dependent launch). Each boundary costs about a microsecond less than a plain one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace anydml {

// Waits until the kernel before is complete and what it wrote can be seen. Must be reached by
// every kernel of a chain but the first, or the chain's end would not mean that all have ended.
__device__ inline void WaitForPrevious() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Lets the next kernel start once all blocks of this one have got here.
__device__ inline void LetNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Enqueues the kernels of a chain. The first waits for all that is in the stream; where it calls
// WaitForPrevious before it touches memory (`all_wait`), it follows the kernel of another operator as
// closely.
class KernelChain {
 public:
  explicit KernelChain(void* stream, bool all_wait = false)
      : stream_(static_cast<cudaStream_t>(stream)), first_(!all_wait) {}

  // An error stays the thread's last error, where the backend looks for it.
  template <typename Parameters>
  void Launch(void (*kernel)(Parameters), uint64_t blocks, uint32_t threads, const Parameters& parameters,
              uint32_t shared_bytes = 0) {
    constexpr uint32_t kWithoutAsking = 32 << 10;  // of 48 KiB, of which kernels have some by themselves
    if (shared_bytes > kWithoutAsking) {
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(shared_bytes));
    }
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<uint32_t>(blocks));
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream_;
    config.attrs = &early;
    config.numAttrs = first_ ? 0 : 1;
    first_ = false;
    cudaLaunchKernelEx(&config, kernel, parameters);
  }

 private:
  cudaStream_t stream_;
  bool first_;
};

}  // namespace anydml
