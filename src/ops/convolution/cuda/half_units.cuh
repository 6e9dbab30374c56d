// FLOAT16 numbers in registers, in units of 16 bytes.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "ops/convolution/activation.h"

namespace anydml {

inline constexpr uint32_t kHalfUnit = 8;  // numbers

__device__ __forceinline__ uint4 LoadHalfUnit(const __half* from) {
  return *reinterpret_cast<const uint4*>(from);
}
__device__ __forceinline__ void StoreHalfUnit(const uint32_t (&words)[4], __half* to) {
  *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
}

__device__ __forceinline__ uint32_t WordOf(const uint4& unit, uint32_t i) {
  return i == 0 ? unit.x : i == 1 ? unit.y : i == 2 ? unit.z : unit.w;
}

// Number `i` of each of two units, the first one in the lower half.
__device__ __forceinline__ uint32_t PairOf(const uint4& first, const uint4& second, uint32_t i) {
  return __byte_perm(WordOf(first, i / 2), WordOf(second, i / 2), i % 2 == 0 ? 0x5410 : 0x7632);
}

__device__ __forceinline__ float2 FloatsOf(uint32_t word) {
  return __half22float2(*reinterpret_cast<const __half2*>(&word));
}
__device__ __forceinline__ uint32_t PackHalves(float low, float high) {
  const __half2 halves = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&halves);
}

// SumLimits::Of for a number that is rounded to FLOAT16, where all NaNs are alike, in two instructions.
__device__ __forceinline__ float LimitHalf(const SumLimits& limits, float x) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(limits.least));
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(limits.most));
  return x;
}

// Makes NaNs canonical.
__device__ __forceinline__ uint32_t WithOneNan(uint32_t word) {
  const auto halves = *reinterpret_cast<const __half2*>(&word);
  const uint32_t nans = __hneu2_mask(halves, halves);
  return (word & ~nans) | (nans & 0x7E007E00);
}

}  // namespace anydml
