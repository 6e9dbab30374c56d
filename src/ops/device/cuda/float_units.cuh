// Accesses FLOAT32 or FLOAT16 in units of sixteen bytes.
#pragma once

#include "ops/device/cuda/reduce.cuh"

namespace anydml::reduce {

template <typename T>
inline constexpr uint32_t kPerUnit = 16 / sizeof(T);

// Loads in flight per thread; fewer if each unit takes much work.
template <typename A>
inline constexpr uint32_t kUnitsAtOnce = kHasPosition<A> ? 4
                                         : kHasSecond<A> ? 2
                                                         : 8;

template <typename T>
struct Numbers {
  float x[kPerUnit<T>];
};

template <typename T>
__device__ __forceinline__ Numbers<T> NumbersOf(const uint4& unit) {
  Numbers<T> numbers;
  const uint32_t words[] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      numbers.x[i] = __uint_as_float(words[i]);
    } else {
      numbers.x[2 * i] = __half2float(__ushort_as_half(static_cast<uint16_t>(words[i])));
      numbers.x[2 * i + 1] = __half2float(__ushort_as_half(static_cast<uint16_t>(words[i] >> 16)));
    }
  }
  return numbers;
}

template <typename T>
__device__ __forceinline__ float NumberAt(const void* data, uint64_t at) {
  if constexpr (sizeof(T) == 4) return static_cast<const float*>(data)[at];
  return __half2float(static_cast<const __half*>(data)[at]);
}

// Calls f.template operator()<A, T>() for the launches of Kernel<A, T>. Products are computed in FLOAT64 and
// are rare, so they have none.
template <typename F>
Launch ForFloats(Accumulation kind, bool last, DataType type, F&& f) {
  if (kind == Accumulation::kProduct) return nullptr;
  return ForAccumulation<float, float>(kind, last, [&]<typename A>() -> Launch {
    if constexpr (std::is_same_v<typename A::Value, double>) {
      return nullptr;
    } else {
      if (type == DataType::kFloat32) return f.template operator()<A, float>();
      if (type == DataType::kFloat16) return f.template operator()<A, __half>();
      return nullptr;
    }
  });
}

}  // namespace anydml::reduce
