// This file is compiled for Armv8.2 with FLOAT16 arithmetic: it has nothing that other files could share.
#include "ops/element/cpu/half_loops.h"

#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

namespace anydml {
namespace {

#define ANYDML_HALF_BODY inline __attribute__((always_inline))

// Which NaN comes of NaNs depends on their order: one and the same.
ANYDML_HALF_BODY float16x8_t OneNan(float16x8_t x) {
  return vbslq_f16(vceqq_f16(x, x), x, vreinterpretq_f16_u16(vdupq_n_u16(0x7E00)));
}

// `low` and `high`, rounded: rounding keeps the order, so that clamping before it is clamping after it.
template <HalfFunction kFunction>
ANYDML_HALF_BODY float16x8_t Call(float16x8_t a, float16x8_t b, float16x8_t low, float16x8_t high) {
  const float16x8_t zero = vdupq_n_f16(0);
  switch (kFunction) {
    case HalfFunction::kAdd:
      return OneNan(vaddq_f16(a, b));
    case HalfFunction::kSubtract:
      return OneNan(vsubq_f16(a, b));
    case HalfFunction::kMultiply:
      return OneNan(vmulq_f16(a, b));
    case HalfFunction::kMaximum:
      return OneNan(vmaxq_f16(a, b));
    case HalfFunction::kMinimum:
      return OneNan(vminq_f16(a, b));
    case HalfFunction::kClip:
      return OneNan(vmaxq_f16(low, vminq_f16(a, high)));
    default:
      return OneNan(vmaxq_f16(a, zero));
  }
}

template <HalfFunction kFunction>
ANYDML_HALF_BODY uint16x8_t Compare(float16x8_t a, float16x8_t b) {
  switch (kFunction) {
    case HalfFunction::kEqual:
      return vceqq_f16(a, b);
    case HalfFunction::kGreater:
      return vcgtq_f16(a, b);
    case HalfFunction::kLess:
      return vcltq_f16(a, b);
    case HalfFunction::kGreaterOrEqual:
      return vcgeq_f16(a, b);
    default:
      return vcleq_f16(a, b);
  }
}

ANYDML_HALF_BODY float16x8_t Load(const uint16_t* from) { return vreinterpretq_f16_u16(vld1q_u16(from)); }

template <HalfFunction kFunction>
void Run(const HalfPiece& piece) {
  constexpr uint64_t kLanes = 8;
  const uint16_t *a = piece.sources[0], *b = piece.sources[1];
  const uint64_t a_step = kLanes * piece.steps[0], b_step = kLanes * piece.steps[1];
  const float16x8_t low = vdupq_n_f16(static_cast<float16_t>(piece.low));
  const float16x8_t high = vdupq_n_f16(static_cast<float16_t>(piece.high));
  std::byte* to = piece.target;
  for (uint64_t left = piece.count; left != 0; left -= kLanes, a += a_step, b += b_step) {
    if constexpr (kFunction >= HalfFunction::kEqual) {
      const uint8x8_t bytes = vmovn_u16(Compare<kFunction>(Load(a), Load(b)));
      vst1_u8(reinterpret_cast<uint8_t*>(to), vand_u8(bytes, vdup_n_u8(1)));
      to += kLanes;
    } else {
      constexpr bool kOne = kFunction == HalfFunction::kClip || kFunction == HalfFunction::kRelu;
      const float16x8_t x = Load(a);
      const float16x8_t result = Call<kFunction>(x, kOne ? x : Load(b), low, high);
      vst1q_u16(reinterpret_cast<uint16_t*>(to), vreinterpretq_u16_f16(result));
      to += kLanes * sizeof(uint16_t);
    }
  }
}

}  // namespace

HalfLoop FindHalfLoop(HalfFunction function) {
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDHP) == 0) return nullptr;
  switch (function) {
#define ANYDML_HALF_CASE(name) \
  case HalfFunction::name:     \
    return &Run<HalfFunction::name>;
    ANYDML_HALF_CASE(kAdd)
    ANYDML_HALF_CASE(kSubtract)
    ANYDML_HALF_CASE(kMultiply)
    ANYDML_HALF_CASE(kMaximum)
    ANYDML_HALF_CASE(kMinimum)
    ANYDML_HALF_CASE(kClip)
    ANYDML_HALF_CASE(kRelu)
    ANYDML_HALF_CASE(kEqual)
    ANYDML_HALF_CASE(kGreater)
    ANYDML_HALF_CASE(kLess)
    ANYDML_HALF_CASE(kGreaterOrEqual)
    ANYDML_HALF_CASE(kLessOrEqual)
#undef ANYDML_HALF_CASE
  }
  return nullptr;
}

}  // namespace anydml

#else

namespace anydml {
HalfLoop FindHalfLoop(HalfFunction) { return nullptr; }
}  // namespace anydml
#endif
