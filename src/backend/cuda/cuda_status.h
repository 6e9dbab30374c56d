// CUDA's errors as statuses, and the thread's current device.
#pragma once

#include <cuda_runtime_api.h>

#include "base/status.h"

namespace anydml::cuda {

// What failed, in words: "copying 12 bytes".
template <typename... Args>
Status Check(cudaError_t error, const Args&... what) {
  if (error == cudaSuccess) return {};
  const Code code = error == cudaErrorMemoryAllocation ? Code::kOutOfMemory : Code::kDriverInternal;
  return Status(
      code, StrCat("CUDA: ", what..., ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")"));
}

// CUDA's calls go to the thread's current device, which may be the application's choice.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : device_(device) {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = device;
    if (before_ != device_) cudaSetDevice(device_);
  }
  ~DeviceScope() {
    if (before_ != device_) cudaSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const int device_;
  int before_ = 0;
};

}  // namespace anydml::cuda
