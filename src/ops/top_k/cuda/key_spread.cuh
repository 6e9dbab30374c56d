// Maps keys to bins.
#pragma once

#include <cfloat>

#include "ops/top_k/cuda/words.cuh"

namespace anydml {

// kBins (a power of two) bins of equal width for the keys from the best one, in bin 0, to the worst. By
// value: equal differences of floating-point numbers, whose bits are unevenly distributed.
template <int kBytes, int kBins, bool kByValue>
class KeySpread {
 public:
  using Key = UnsignedOf<kBytes>;
  static_assert(!kByValue || kBytes == 2 || kBytes == 4);

  __device__ KeySpread(const KeyOrder& order, Key worst, Key best) : order_(order), best_(best) {
    if constexpr (kByValue) {
      origin_ = Finite(ValueOf(best));
      const float width = fabsf(Finite(ValueOf(worst)) - origin_);
      // Neither zero nor infinite for any keys, so that only NaN gives NaN below.
      scale_ = kBins / fminf(fmaxf(width, 1e-30f), FLT_MAX);
      // Downward from the best one. Not by the width's sign, which is 0 between the largest number and
      // infinity.
      if (order.flip == 0) scale_ = -scale_;
    } else {
      shift_ = max(0, BitWidth(static_cast<Key>(best - worst)) - (31 - __clz(kBins)));
    }
  }

  // Never lower for the worse of two keys.
  __device__ uint32_t BinOf(Key key) const {
    if constexpr (kByValue) {
      float bin = (ValueOf(key) - origin_) * scale_;
      if (order_.flip != 0) bin = fminf(bin, kBins - 1);  // NaN is the worst; otherwise it becomes 0
      return min(__float2uint_rz(bin), kBins - 1u);
    } else {
      return static_cast<uint32_t>(static_cast<Key>(best_ - key) >> shift_);
    }
  }

 private:
  __device__ float ValueOf(Key key) const {
    Key element;
    KeyToElement<kBytes>(order_, key, &element);
    if constexpr (kBytes == 4) {
      return __uint_as_float(element);
    } else {
      float value;
      asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(element));
      return value;
    }
  }
  static __device__ float Finite(float value) { return fmaxf(fminf(value, FLT_MAX), -FLT_MAX); }

  KeyOrder order_;
  Key best_;
  float origin_ = 0;  // the value of the best one
  float scale_ = 0;
  int shift_ = 0;
};

// Calls f.operator()<kByValue>() with the method for the order.
template <int kBytes, typename F>
__device__ auto DispatchBySpread(const KeyOrder& order, F&& f) {
  if constexpr (kBytes == 2 || kBytes == 4) {
    if (order.is_float) return f.template operator()<true>();
  }
  return f.template operator()<false>();
}

}  // namespace anydml
