// The kernel for any layout and type: a block computes several outputs, each with several threads.
#pragma once

#include "ops/device/cuda/reduce.cuh"

namespace anydml::reduce {

template <typename A, typename T>
__device__ A AddElements(const ReduceParameters& p, uint32_t output, uint32_t segment, uint32_t lane) {
  uint64_t start[2];
  p.kept.OffsetsOf(output, start);
  const uint64_t begin = uint64_t{segment} * p.segment;
  const uint64_t end = min(begin + p.segment, uint64_t{p.elements});
  A a = A::Start();
#pragma unroll 4
  for (uint64_t i = begin + lane; i < end; i += p.lanes) {
    uint64_t offset[1];
    p.reduced.OffsetsOf(static_cast<uint32_t>(i), offset);
    a.Add(LoadAs<T>(p.input, p.input_type, start[0] + offset[0]), static_cast<uint32_t>(i));
  }
  return a;
}

template <typename A>
__device__ A AddPartials(const ReduceParameters& p, uint32_t output, uint32_t lane) {
  const A* const partials = static_cast<const A*>(p.partials) + output;
  A a = A::Start();
#pragma unroll 4
  for (uint32_t s = lane; s < p.segments; s += p.lanes) a.Merge(partials[uint64_t{s} * p.outputs]);
  return a;
}

template <typename A, typename T>
__global__ void __launch_bounds__(kReduceThreads)
    ReduceEverything(const __grid_constant__ ReduceParameters p) {
  __shared__ A shared[kReduceThreads];
  if (p.merges) WaitForPrevious();
  const uint32_t column = p.lanes_first ? threadIdx.x / p.lanes : threadIdx.x % p.columns;
  const uint32_t lane = p.lanes_first ? threadIdx.x % p.lanes : threadIdx.x / p.columns;
  const uint32_t parts = p.merges ? 1 : p.segments;
  const uint32_t segment = blockIdx.x % parts;
  const uint64_t output = uint64_t{blockIdx.x / parts} * p.columns + column;
  A a = A::Start();
  if (output < p.outputs) {
    a = p.merges ? AddPartials<A>(p, static_cast<uint32_t>(output), lane)
                 : AddElements<A, T>(p, static_cast<uint32_t>(output), segment, lane);
  }
  // lanes is a power of two
  shared[column * p.lanes + lane] = a;
  for (uint32_t half = p.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) {
      a.Merge(shared[column * p.lanes + lane + half]);
      shared[column * p.lanes + lane] = a;
    }
  }
  if (lane != 0 || output >= p.outputs) return;
  if (p.merges) {
    FinishOutput(p, static_cast<uint32_t>(output), a);
  } else {
    EndSegment(p, static_cast<uint32_t>(output), segment, a);
  }
}

template <typename T>
Launch LaunchOf(Accumulation kind, bool last) {
  return ForAccumulation<T, float>(kind, last, [&]<typename A>() -> Launch {
    return [](KernelChain& chain, const ReduceParameters& p, const Grid& grid) {
      chain.Launch(ReduceEverything<A, T>, grid, p);
    };
  });
}

}  // namespace anydml::reduce
