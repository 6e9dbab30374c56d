// Conversions between numbers and elements, with GPU instructions if possible. The results are those of
// saturate.h and narrow.h; NaNs, for which GPUs use other bits, become canonical.
#pragma once

#include <cuda_fp16.h>

#include "ops/numbers/math/lane.h"
#include "ops/numbers/math/narrow.h"
#include "ops/numbers/math/saturate.h"

namespace anydml::element_cuda {

ANYDML_LANE float AsFloat(uint32_t bits) { return lane::detail::Cast<float>(bits); }
ANYDML_LANE uint32_t AsBits(float value) { return lane::detail::Cast<uint32_t>(value); }

ANYDML_LANE uint32_t WithOneNan(uint32_t float_bits) {
  const float value = AsFloat(float_bits);
  return value != value ? 0x7FC00000u : float_bits;
}

ANYDML_LANE float HalfToFloat(uint16_t bits) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(bits));
#else
  return ToFloat(Half{bits});
#endif
}

// Two halves, the first in the low bits.
ANYDML_LANE uint32_t FloatsToHalves(float low, float high) {
#ifdef __CUDA_ARCH__
  const __half2 halves = __floats2half2_rn(low, high);
  const uint32_t nans = __hneu2_mask(halves, halves);
  uint32_t bits;
  memcpy(&bits, &halves, sizeof(bits));
  return (bits & ~nans) | (0x7E007E00u & nans);
#else
  const auto one = [](float value) { return value != value ? 0x7E00u : uint32_t{ToHalf(value).bits}; };
  return one(low) | one(high) << 16;
#endif
}

ANYDML_LANE int32_t FloatToInt32(float value) {
#ifdef __CUDA_ARCH__
  return __float2int_rz(value);
#else
  return Saturate<int32_t>(value);
#endif
}
ANYDML_LANE uint32_t FloatToUInt32(float value) {
#ifdef __CUDA_ARCH__
  return __float2uint_rz(value);
#else
  return Saturate<uint32_t>(value);
#endif
}

// The range of an integer type of fewer than 32 bits.
struct Range {
  int32_t low;
  int32_t high;
};
ANYDML_LANE Range RangeOf(DataType type) {
  switch (type) {
    case DataType::kInt4:
      return {-8, 7};
    case DataType::kUInt4:
      return {0, 15};
    case DataType::kInt8:
      return {-128, 127};
    case DataType::kUInt8:
      return {0, 255};
    case DataType::kInt16:
      return {-32768, 32767};
    case DataType::kUInt16:
      return {0, 65535};
    default:
      return {-2147483647 - 1, 2147483647};
  }
}
ANYDML_LANE uint32_t FloatToInteger(float value, Range range) {
  const int32_t whole = FloatToInt32(value);
  const int32_t at_most = whole < range.high ? whole : range.high;
  return static_cast<uint32_t>(at_most > range.low ? at_most : range.low);
}

}  // namespace anydml::element_cuda
