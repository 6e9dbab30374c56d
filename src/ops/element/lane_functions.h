// The bodies of functions-inl.h for one lane: what GPUs and builds without Highway run.
#pragma once

#include <type_traits>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#include "ops/element/program.h"
#include "ops/numbers/math/lane.h"
#include "ops/numbers/math/lane_math.h"

namespace anydml::lane_functions {

namespace hn = lane;
namespace math = lane;
#define ANYDML_BODY ANYDML_LANE

#ifdef __CUDA_ARCH__
#define ANYDML_STORES_ONE_NAN
// GPU instructions: of a number and NaN they return NaN, and order -0 before +0.
template <typename T>
ANYDML_LANE T LargerNumber(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
  } else {
    return lane::Max(a, b);
  }
}
template <typename T>
ANYDML_LANE T SmallerNumber(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
  } else {
    return lane::Min(a, b);
  }
}
ANYDML_LANE float ThroughHalf(float a) { return __half2float(__float2half_rn(a)); }
#endif

#include "ops/element/functions-inl.h"
#include "ops/element/transcendental_functions-inl.h"
#undef ANYDML_BODY
#undef ANYDML_STORES_ONE_NAN

}  // namespace anydml::lane_functions
