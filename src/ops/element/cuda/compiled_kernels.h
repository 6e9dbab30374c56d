// Kernels that the driver compiles from PTX text at run time.
#pragma once

#include <cuda.h>

#include <string>

#include "base/status.h"
#include "kernel/device_traits.h"

namespace anydml::element_cuda {

// A kernel on one device. Its module lives as long as the process.
class CompiledKernel {
 public:
  explicit CompiledKernel(const DeviceTraits& device) : device_(device) {}
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  // Compiles the kernel `name` of a module's text, once; false, with a reason, if the driver cannot.
  bool Load(const std::string& text, const char* name, std::string* why_not);

  // `parameters`: the address of each.
  Status Launch(uint64_t blocks, uint32_t threads, void** parameters, void* stream) const;

 private:
  const DeviceTraits device_;
  CUfunction function_ = nullptr;
};

// The kernel `name` of a module's text for the current device. A text is compiled once and kept. Null, with a
// reason in *why_not, if the driver cannot compile it or the limit of kernels is reached.
const CompiledKernel* CompileKernel(const DeviceTraits& device, const std::string& text, const char* name,
                                    std::string* why_not);

}  // namespace anydml::element_cuda
