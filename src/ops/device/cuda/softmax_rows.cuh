// Softmax over contiguous sets (rows): 16 bytes per thread at a time.
#pragma once

#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/float_units.cuh"
#include "ops/softmax/plan.h"

namespace anydml::softmax {

// e^difference, for differences that are not positive, with the device's power of 2. For FLOAT32 results it
// includes the product's rounding error.
template <typename T>
__device__ __forceinline__ float PowerOf(float difference) {
  constexpr float kLog2E = 0x1.715476p0f, kLog2ERest = 0x1.4ae0cp-26f, kLn2 = 0x1.62e43p-1f;
  float power;
  if constexpr (sizeof(T) == 2) {
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(__fmul_rn(difference, kLog2E)));
    return power;
  } else {
    const float x = lane::AtLeast(lane::Tag<float>(), difference, -104.0f);
    const float product = __fmul_rn(x, kLog2E);
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(product));
    const float rest = __fmaf_rn(x, kLog2ERest, __fmaf_rn(x, kLog2E, -product));
    return __fmaf_rn(power, __fmul_rn(rest, kLn2), power);
  }
}

struct Larger {
  static constexpr float kNone = -lane::kInfinity;
  __device__ float operator()(float a, float b) const { return reduce::Extreme<false>(a, b); }
};
struct Total {
  static constexpr float kNone = 0;
  __device__ float operator()(float a, float b) const { return __fadd_rn(a, b); }
};

template <typename Merge>
__device__ __forceinline__ float MergeWarp(float x) {
#pragma unroll
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    x = Merge()(x, __shfl_xor_sync(~0u, x, distance));
  }
  return x;
}

// Reduces over all threads of a row; each gets the result. `shared` has room for 32 and is not reused.
template <typename Merge>
__device__ __forceinline__ float MergeRow(float x, uint32_t lanes, float* shared) {
  x = MergeWarp<Merge>(x);
  if (lanes == 32) return x;
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  return MergeWarp<Merge>(threadIdx.x % 32 < lanes / 32 ? shared[threadIdx.x % 32] : Merge::kNone);
}

template <typename T>
__device__ __forceinline__ void StoreNumbers(const reduce::Numbers<T>& numbers, uint4* to) {
  uint32_t words[4];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      words[i] = __float_as_uint(numbers.x[i]);
    } else {
      words[i] = element_cuda::FloatsToHalves(numbers.x[2 * i], numbers.x[2 * i + 1]);
    }
  }
  __stcs(to, make_uint4(words[0], words[1], words[2], words[3]));
}

// Turns a difference or, for SOFTMAX, its power into a result: if the sum is NaN, all results are.
template <typename T>
struct Finisher {
  float sum;
  bool is_log;
  float by;

  __device__ Finisher(float total, bool log)
      : sum(total), is_log(log), by(log ? lane::Log(lane::Tag<float>(), total) : lane::Div(1.0f, total)) {}

  __device__ float OfDifference(float difference) const {
    return is_log ? WithOneNan(__fsub_rn(difference, by)) : OfPower(PowerOf<T>(difference));
  }
  __device__ float OfPower(float power) const { return WithOneNan(__fmul_rn(power, by)); }

 private:
  __device__ float WithOneNan(float y) const { return reduce::IsNan(sum) ? lane::kNan : y; }
};

}  // namespace anydml::softmax
