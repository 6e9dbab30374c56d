#include "backend/cuda/cuda_host_runner.h"

#include "backend/cuda/cuda_status.h"

namespace anydml::cuda {

Status CudaHostRunner::Check() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  ANYDML_RETURN_IF_ERROR(cuda::Check(cudaStreamIsCapturing(stream_, &status), "asking for a capture"));
  if (status == cudaStreamCaptureStatusNone) return {};
  return Status(
      Code::kUnsupported,
      "the device has no implementation of this operator, and one on the host cannot be captured in a "
      "CUDA graph; run it outside of the capture");
}

Status CudaHostRunner::Read(std::byte* host, const std::byte* device, uint64_t bytes) {
  return Copy(host, device, bytes);
}

Status CudaHostRunner::Write(std::byte* device, const std::byte* host, uint64_t bytes) {
  return Copy(device, host, bytes);
}

Status CudaHostRunner::Copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  ANYDML_RETURN_IF_ERROR(
      cuda::Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copying ", bytes, " bytes"));
  return cuda::Check(cudaStreamSynchronize(stream_), "waiting for a copy");
}

}  // namespace anydml::cuda
