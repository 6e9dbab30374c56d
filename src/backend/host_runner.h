// Runs CPU kernels for a device's stream (kernel/host_kernel.h).
#pragma once

#include "kernel/kernel.h"

namespace anydml {

// A backend's stream derives from it and supplies the copies.
class HostRunner : public HostAccess {
 public:
  Status RunOnHost(const Kernel& kernel, const KernelArguments& arguments, bool initialize) final;

 protected:
  ~HostRunner() = default;

 private:
  // Whether the stream can be waited for now.
  virtual Status Check() { return {}; }
  // After everything that the stream was given before; complete on return.
  virtual Status Read(std::byte* host, const std::byte* device, uint64_t bytes) = 0;
  virtual Status Write(std::byte* device, const std::byte* host, uint64_t bytes) = 0;
};

}  // namespace anydml
