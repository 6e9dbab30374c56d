#include "backend/cuda/device_functions.h"

#include <algorithm>

namespace anydml::cuda {
namespace {

constexpr uint32_t kThreads = 256;

__global__ void Fill32Kernel(uint8_t* target, uint32_t value, uint64_t words, uint32_t tail) {
  const uint64_t first = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (uint64_t i = first; i < words; i += uint64_t{gridDim.x} * kThreads) {
    reinterpret_cast<uint32_t*>(target)[i] = value;
  }
  if (first < tail) target[words * 4 + first] = static_cast<uint8_t>(value >> (8 * first));
}

constexpr uint32_t kUnitsPerThread = 4;  // loads in flight per thread

template <typename Unit>
__global__ void __launch_bounds__(kThreads) CopyKernel(Unit* target, const Unit* source, uint64_t units) {
  const uint64_t first = uint64_t{blockIdx.x} * (kThreads * kUnitsPerThread) + threadIdx.x;
  Unit held[kUnitsPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
    if (first + i * kThreads < units) held[i] = __ldcs(source + first + i * kThreads);
  }
#pragma unroll
  for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
    if (first + i * kThreads < units) __stcs(target + first + i * kThreads, held[i]);
  }
}

template <typename Unit>
void LaunchCopy(void* target, const void* source, uint64_t bytes, cudaStream_t stream) {
  const uint64_t units = bytes / sizeof(Unit);
  const uint64_t per_block = kThreads * kUnitsPerThread;
  if (units == 0) return;
  CopyKernel<<<static_cast<uint32_t>((units + per_block - 1) / per_block), kThreads, 0, stream>>>(
      static_cast<Unit*>(target), static_cast<const Unit*>(source), units);
}

// One block, which reads each piece before it writes any of it, and takes the pieces in the order in which
// none is overwritten before it is read. Slow, but rare.
__global__ void MoveKernel(uint8_t* target, const uint8_t* source, uint64_t bytes) {
  constexpr uint64_t kEach = 16;
  constexpr uint64_t kPiece = kEach * kThreads;
  const uint64_t pieces = (bytes + kPiece - 1) / kPiece;
  for (uint64_t i = 0; i < pieces; ++i) {
    const uint64_t begin = (target < source ? i : pieces - 1 - i) * kPiece + threadIdx.x;
    uint8_t held[kEach];
    for (uint64_t e = 0; e < kEach; ++e) {
      const uint64_t at = begin + e * kThreads;
      if (at < bytes) held[e] = source[at];
    }
    __syncthreads();
    for (uint64_t e = 0; e < kEach; ++e) {
      const uint64_t at = begin + e * kThreads;
      if (at < bytes) target[at] = held[e];
    }
    __syncthreads();
  }
}

__global__ void ClockKernel(uint64_t* target) {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  *target = now;
}

}  // namespace

cudaError_t Fill32(void* target, uint32_t value, uint64_t bytes, cudaStream_t stream) {
  const uint64_t words = bytes / 4;
  const auto blocks = static_cast<uint32_t>(std::clamp<uint64_t>(words / kThreads, 1, 4096));
  Fill32Kernel<<<blocks, kThreads, 0, stream>>>(static_cast<uint8_t*>(target), value, words,
                                                static_cast<uint32_t>(bytes % 4));
  return cudaGetLastError();
}

cudaError_t CopyOnDevice(void* target, const void* source, uint64_t bytes, cudaStream_t stream) {
  const uint64_t addresses = reinterpret_cast<uint64_t>(target) | reinterpret_cast<uint64_t>(source);
  const uint64_t aligned = addresses % sizeof(uint4) == 0 ? bytes / sizeof(uint4) * sizeof(uint4) : 0;
  LaunchCopy<uint4>(target, source, aligned, stream);
  LaunchCopy<uint8_t>(static_cast<uint8_t*>(target) + aligned, static_cast<const uint8_t*>(source) + aligned,
                      bytes - aligned, stream);
  return cudaGetLastError();
}

cudaError_t MoveOverlapping(void* target, const void* source, uint64_t bytes, cudaStream_t stream) {
  MoveKernel<<<1, kThreads, 0, stream>>>(static_cast<uint8_t*>(target), static_cast<const uint8_t*>(source),
                                         bytes);
  return cudaGetLastError();
}

cudaError_t WriteClock(uint64_t* target, cudaStream_t stream) {
  ClockKernel<<<1, 1, 0, stream>>>(target);
  return cudaGetLastError();
}

}  // namespace anydml::cuda
