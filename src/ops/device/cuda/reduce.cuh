// What the kernels of reductions share: loads and stores of any type, and putting the
// accumulators of threads together.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/reduce/accumulate.h"
#include "ops/reduce/plan.h"

namespace anydml::reduce {

// Loads as float, or as an integer of class T.
template <typename T>
__device__ T LoadAs(const void* data, DataType type, uint64_t at) {
  if constexpr (std::is_same_v<T, float>) {
    if (type == DataType::kFloat16) return __half2float(static_cast<const __half*>(data)[at]);
    return static_cast<const float*>(data)[at];
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<const T*>(data)[at];
  } else {
    using Short = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
    using Byte = std::conditional_t<std::is_signed_v<T>, int8_t, uint8_t>;
    switch (type) {
      case DataType::kInt8:
      case DataType::kUInt8:
        return static_cast<const Byte*>(data)[at];
      case DataType::kInt16:
      case DataType::kUInt16:
        return static_cast<const Short*>(data)[at];
      default:
        return static_cast<const T*>(data)[at];
    }
  }
}

template <typename Result>
__device__ void StoreAs(void* data, DataType type, uint64_t at, Result result) {
  if constexpr (std::is_same_v<Result, float>) {
    if (type == DataType::kFloat16) {
      const __half half = result != result ? __ushort_as_half(0x7E00) : __float2half_rn(result);
      static_cast<__half*>(data)[at] = half;
    } else {
      static_cast<float*>(data)[at] = result;
    }
  } else {
    switch (BitSize(type)) {
      case 8:
        static_cast<uint8_t*>(data)[at] = static_cast<uint8_t>(result);
        break;
      case 16:
        static_cast<uint16_t*>(data)[at] = static_cast<uint16_t>(result);
        break;
      case 32:
        static_cast<uint32_t*>(data)[at] = static_cast<uint32_t>(result);
        break;
      default:
        static_cast<uint64_t*>(data)[at] = static_cast<uint64_t>(result);
    }
  }
}

template <typename A>
__device__ void FinishOutput(const ReduceParameters& p, uint32_t output, const A& accumulated) {
  uint64_t offsets[2];
  p.kept.OffsetsOf(output, offsets);
  StoreAs(p.output, p.output_type, offsets[1],
          FinishNumber(accumulated, p.function, static_cast<float>(p.elements)));
}

// Stores the result of a segment: to the output, or as a partial one.
template <typename A>
__device__ void EndSegment(const ReduceParameters& p, uint32_t output, uint32_t segment,
                           const A& accumulated) {
  if (p.segments == 1) {
    FinishOutput(p, output, accumulated);
  } else {
    static_cast<A*>(p.partials)[uint64_t{segment} * p.outputs + output] = accumulated;
  }
}

template <typename A>
__device__ A ShuffleDown(const A& a, uint32_t distance) {
  A other;
  other.value = __shfl_down_sync(~0u, a.value, distance);
  if constexpr (kHasSecond<A>) other.second = __shfl_down_sync(~0u, a.second, distance);
  return other;
}

// Merges over a whole warp, into its first thread.
template <typename A>
__device__ A MergeWarp(A a) {
  for (uint32_t distance = 16; distance > 0; distance /= 2) a.Merge(ShuffleDown(a, distance));
  return a;
}

// Merges over a whole block of up to 1024 threads, into its first thread. `shared` has room for 32.
template <typename A>
__device__ A MergeBlock(A a, A* shared) {
  a = MergeWarp(a);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = a;
  __syncthreads();
  if (threadIdx.x < 32) {
    a = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : A::Start();
    a = MergeWarp(a);
  }
  return a;
}

// The kernels to launch for a problem; null if there is none.
using Launch = void (*)(KernelChain& chain, const ReduceParameters& p, const Grid& grid);

Launch FindFloatLaunch(Accumulation kind, bool last);                   // everything.cuh, for floats
Launch FindIntegerLaunch(Accumulation kind, bool last, DataType type);  // the same for integers
Launch FindRowsLaunch(Accumulation kind, bool last, DataType type);     // reduced_rows.cu
Launch FindColumnsLaunch(Accumulation kind, bool last, DataType type);  // columns.cu

}  // namespace anydml::reduce
