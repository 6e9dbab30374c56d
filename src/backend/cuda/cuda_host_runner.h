#pragma once

#include <cuda_runtime_api.h>

#include "backend/host_runner.h"

namespace anydml::cuda {

// For a stream of ours or the application's. The device is the thread's current one.
class CudaHostRunner final : public HostRunner {
 public:
  explicit CudaHostRunner(cudaStream_t stream) : stream_(stream) {}

 private:
  Status Check() override;  // refuses a stream that is being captured
  Status Read(std::byte* host, const std::byte* device, uint64_t bytes) override;
  Status Write(std::byte* device, const std::byte* host, uint64_t bytes) override;
  Status Copy(std::byte* to, const std::byte* from, uint64_t bytes);

  const cudaStream_t stream_;
};

}  // namespace anydml::cuda
