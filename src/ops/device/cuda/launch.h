// Shared by the host side of the CUDA kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"
#include "ops/top_k/problem.h"

namespace anydml {

// Calls f.operator()<kBytes>() with the size of an element.
template <typename F>
auto DispatchBySize(DataType type, F&& f) {
  switch (BitSize(type)) {
    case 8:
      return f.template operator()<1>();
    case 16:
      return f.template operator()<2>();
    case 32:
      return f.template operator()<4>();
    default:
      return f.template operator()<8>();
  }
}

// Lets `kernel` use at least this much dynamic shared memory on `device`, which must be current; false, with
// the reason, if it cannot.
template <typename Function>
bool AllowSharedMemory(const DeviceTraits& device, Function* kernel, uint64_t bytes, std::string* why_not) {
  cudaFuncAttributes now{};
  cudaError_t error = cudaFuncGetAttributes(&now, kernel);
  if (error == cudaSuccess) {
    if (bytes <= static_cast<uint64_t>(now.maxDynamicSharedSizeBytes)) return true;
    const uint64_t most = device.shared_bytes_per_block - now.sharedSizeBytes;
    if (bytes > most) {
      *why_not = StrCat(bytes, " bytes of shared memory are needed; a block has ", most);
      return false;
    }
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }
  if (error == cudaSuccess) return true;
  cudaGetLastError();
  *why_not = StrCat("the device does not give a block ", bytes,
                    " bytes of shared memory: ", cudaGetErrorString(error));
  return false;
}

template <typename... Parameters, typename... Arguments>
void LaunchWith(cudaLaunchAttribute attribute, void (*kernel)(Parameters...), uint32_t blocks,
                uint32_t threads, uint32_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// Launches `kernel` so that it may begin while the previous one in the stream runs; it calls
// cudaGridDependencySynchronize() before it uses that one's results.
template <typename Function, typename... Arguments>
void LaunchEarly(Function* kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes,
                 cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  LaunchWith(early, kernel, blocks, threads, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

// Launches `clusters` clusters of `blocks` blocks.
template <typename Function, typename... Arguments>
void LaunchClusters(Function* kernel, uint32_t clusters, uint32_t blocks, uint32_t threads,
                    uint32_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  LaunchWith(cluster, kernel, clusters * blocks, threads, shared_bytes, stream,
             std::forward<Arguments>(arguments)...);
}

// How many blocks of `kernel` can run on `device`, which must be current, at the same time; 0, with the
// reason, on failure.
template <typename Function>
uint32_t BlocksAtOnce(const DeviceTraits& device, Function* kernel, uint32_t threads, uint32_t shared_bytes,
                      std::string* why_not) {
  int of_multiprocessor = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &of_multiprocessor, kernel, static_cast<int>(threads), shared_bytes);
  if (error == cudaSuccess && of_multiprocessor > 0) return of_multiprocessor * device.multiprocessors;
  cudaGetLastError();
  *why_not = StrCat("no multiprocessor has room for a block of ", threads, " threads and ", shared_bytes,
                    " bytes of shared memory (", cudaGetErrorString(error), ")");
  return 0;
}

// Launches at most BlocksAtOnce blocks, so that they may wait for each other.
template <typename Function, typename... Arguments>
void LaunchTogether(Function* kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes,
                    cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  LaunchWith(together, kernel, blocks, threads, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

}  // namespace anydml
