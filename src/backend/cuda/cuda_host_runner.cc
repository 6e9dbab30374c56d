#include "backend/cuda/cuda_host_runner.h"

#include "backend/cuda/cuda_status.h"

namespace anydml::cuda {

Status CudaHostRunner::Read(std::byte* host, const std::byte* device, uint64_t bytes) {
  return Copy(host, device, bytes);
}

Status CudaHostRunner::Write(std::byte* device, const std::byte* host, uint64_t bytes) {
  return Copy(device, host, bytes);
}

Status CudaHostRunner::Copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  ANYDML_RETURN_IF_ERROR(
      Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copying ", bytes, " bytes"));
  return Check(cudaStreamSynchronize(stream_), "waiting for a copy");
}

}  // namespace anydml::cuda
