// CUDA's errors as statuses, and the thread's current device.
#pragma once

#include <cuda_runtime_api.h>

#include "base/status.h"

namespace anydml::cuda {

// The arguments say what failed: "copying 12 bytes".
template <typename... Args>
Status Check(cudaError_t error, const Args&... what) {
  if (error == cudaSuccess) return {};
  const Code code = error == cudaErrorMemoryAllocation ? Code::kOutOfMemory : Code::kDriverInternal;
  return Status(
      code, StrCat("CUDA: ", what..., ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")"));
}

// CUDA's calls go to the thread's current device, which the application may have chosen. Makes `device`
// current; returns the previous one.
inline int MakeCurrent(int device) {
  int before = device;
  if (cudaGetDevice(&before) != cudaSuccess) before = device;
  if (before != device) cudaSetDevice(device);
  return before;
}

class DeviceScope {
 public:
  explicit DeviceScope(int device) : device_(device), before_(MakeCurrent(device)) {}
  ~DeviceScope() {
    if (before_ != device_) cudaSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const int device_;
  const int before_;
};

}  // namespace anydml::cuda
