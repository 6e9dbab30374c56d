// Kernels that the driver compiles from text while the process runs.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "kernel/device_properties.h"

namespace anydml::element_cuda {

// A kernel on one device. Ends with the last that uses it.
class CompiledKernel {
 public:
  CompiledKernel(const DeviceProperties& device, CUmodule module, CUfunction function)
      : device_(device), module_(module), function_(function) {}
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  // `parameters`: the address of each.
  Status Launch(uint64_t blocks, uint32_t threads, void** parameters, void* stream) const;

 private:
  const DeviceProperties device_;
  const CUmodule module_;
  const CUfunction function_;
};

// The kernel `name` of a module's text, for the device that is current; the last ones are kept, so that the
// same text is compiled once. Null, with a reason in *why_not, where the driver cannot compile it.
std::shared_ptr<const CompiledKernel> CompileKernel(const DeviceProperties& device, const std::string& text,
                                                    const char* name, std::string* why_not);

}  // namespace anydml::element_cuda
