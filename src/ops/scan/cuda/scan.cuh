// Shared by the scan kernels: elements as totals, and running totals over warps and blocks.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "ops/scan/plan.h"

namespace anydml {

// The total of elements of type Element.
template <typename Element>
struct ScanTotal {
  using Type = Element;
};
template <>
struct ScanTotal<__half> {
  using Type = float;
};

__device__ inline float ToTotal(__half x) { return __half2float(x); }
template <typename T>
__device__ T ToTotal(T x) {
  return x;
}

// NaNs are stored as canonical ones.
template <typename Element>
__device__ Element ToElement(typename ScanTotal<Element>::Type x) {
  if constexpr (std::is_same_v<Element, __half>) {
    return x == x ? __float2half_rn(x) : __ushort_as_half(0x7E00);
  } else if constexpr (std::is_same_v<Element, float>) {
    return x == x ? x : __uint_as_float(0x7FC00000u);
  } else {
    return x;
  }
}

// The total of this lane and all previous ones.
template <bool kMultiplies, typename T>
__device__ T ScanWarp(T total) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (uint32_t step = 1; step < 32; step *= 2) {
    const T other = __shfl_up_sync(~0u, total, step);
    if (lane >= step) total = ScanCombine<T, kMultiplies>(other, total);
  }
  return total;
}

// Calls f.template operator()<Element, kMultiplies>().
template <typename F>
auto DispatchScanOnDevice(const ScanProblem& problem, F&& f) {
  const auto by_function = [&]<typename Element>() {
    return problem.multiplies ? f.template operator()<Element, true>()
                              : f.template operator()<Element, false>();
  };
  switch (problem.output.type) {
    case DataType::kFloat32:
      return by_function.template operator()<float>();
    case DataType::kFloat16:
      return by_function.template operator()<__half>();
    default:
      return BitSize(problem.output.type) == 64 ? by_function.template operator()<unsigned long long>()
                                                : by_function.template operator()<uint32_t>();
  }
}

}  // namespace anydml
