// Consecutive kernels of one operator: the next one starts while the last blocks of the previous one still
// run, and waits where it needs their results (programmatic dependent launch). This saves about a microsecond
// per kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <mutex>

#include "ops/device/grid.h"

namespace anydml {

// Waits until the previous kernel is complete and its writes are visible. Every kernel of a chain except the
// first must call it; otherwise the end of the chain would not mean that all kernels have ended.
__device__ inline void WaitForPrevious() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Lets the next kernel start once all blocks of this one have called it.
__device__ inline void LetNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Enqueues the kernels of a chain. The first waits for everything in the stream; if it calls WaitForPrevious
// before it touches memory (`all_wait`), it may overlap the end of another operator's kernel, too.
class KernelChain {
 public:
  explicit KernelChain(void* stream, bool all_wait = false)
      : stream_(static_cast<cudaStream_t>(stream)), first_(!all_wait) {}

  // An error stays the thread's last CUDA error, where the backend finds it. `cluster`: the number of blocks
  // that run at the same time and can access each other's shared memory.
  template <typename Parameters>
  void Launch(void (*kernel)(Parameters), uint64_t blocks, uint32_t threads, const Parameters& parameters,
              uint32_t shared_bytes = 0, uint32_t cluster = 1) {
    constexpr uint32_t kWithoutAsking = 32 << 10;  // kernels may use 48 KiB, static shared memory included,
                                                   // without raising the limit
    if (shared_bytes > kWithoutAsking) {
      AllowSharedBytes(reinterpret_cast<const void*>(kernel), static_cast<int>(shared_bytes));
    }
    cudaLaunchAttribute attributes[2] = {};
    uint32_t count = 0;
    if (!first_) {
      attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
      attributes[count].id = cudaLaunchAttributeClusterDimension;
      attributes[count++].val.clusterDim = {cluster, 1, 1};
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<uint32_t>(blocks));
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream_;
    config.attrs = attributes;
    config.numAttrs = count;
    first_ = false;
    cudaLaunchKernelEx(&config, kernel, parameters);
  }
  template <typename Parameters>
  void Launch(void (*kernel)(Parameters), const Grid& grid, const Parameters& parameters) {
    Launch(kernel, grid.blocks, grid.threads, parameters, grid.shared_bytes);
  }

 private:
  // The limit belongs to the kernel and is shared by all threads, so it only rises.
  static void AllowSharedBytes(const void* kernel, int bytes) {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    cudaFuncAttributes now{};
    if (cudaFuncGetAttributes(&now, kernel) == cudaSuccess && now.maxDynamicSharedSizeBytes >= bytes) return;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }

  cudaStream_t stream_;
  bool first_;
};

}  // namespace anydml
