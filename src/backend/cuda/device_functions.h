// The small kernels of a stream. All return the result of their launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace anydml::cuda {

// `bytes` of `value`, repeated; the target is aligned to 4; the last word may be partial.
cudaError_t Fill32(void* target, uint32_t value, uint64_t bytes, cudaStream_t stream);

// memcpy within the device's memory, by a kernel.
cudaError_t CopyOnDevice(void* target, const void* source, uint64_t bytes, cudaStream_t stream);

// memmove: the source and the target may overlap.
cudaError_t MoveOverlapping(void* target, const void* source, uint64_t bytes, cudaStream_t stream);

// The device's clock, in nanoseconds.
cudaError_t WriteClock(uint64_t* target, cudaStream_t stream);

}  // namespace anydml::cuda
