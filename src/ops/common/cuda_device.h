// What kernels want to know about the GPU when they are created.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace anydml {

struct CudaDevice {
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // the most that a kernel may ask for
};

// Of device 0, asked once; null with the reason when there is none.
inline const CudaDevice* GetCudaDevice(std::string* why_not) {
  static cudaError_t error = cudaSuccess;
  static const CudaDevice device = [] {
    CudaDevice found;
    const auto ask = [](int* value, cudaDeviceAttr attribute) {
      if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, attribute, 0);
    };
    ask(&found.multiprocessors, cudaDevAttrMultiProcessorCount);
    ask(&found.shared_bytes_per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return found;
  }();
  if (error == cudaSuccess) return &device;
  *why_not = std::string("there is no CUDA device: ") + cudaGetErrorString(error);
  return nullptr;
}

}  // namespace anydml
