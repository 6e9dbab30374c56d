// Vectors with FLOAT16 arithmetic. Included only by files that are compiled for Armv8.2 with FLOAT16
// arithmetic, or for AVX-512 with it (ANYDML_HALF_VECTORS); these must not contain anything that the linker
// could share with other files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/numbers/half_loops.h"

#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define ANYDML_HALF_VECTORS 1
#elif defined(__AVX512FP16__)
#include <cpuid.h>
#include <immintrin.h>
#define ANYDML_HALF_VECTORS 1
#endif

#if ANYDML_HALF_VECTORS
namespace anydml {
namespace {

#define ANYDML_HALF_BODY inline __attribute__((always_inline))

#if defined(__AVX512FP16__)
constexpr uint64_t kLanes = 32;
using Halves = __m512h;
using Truths = __mmask32;

// Bit 23 by number: not all compilers that know the instructions have a name for it.
bool HasHalfVectors() {
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 23 & 1) != 0;
}

ANYDML_HALF_BODY Halves All(float x) { return _mm512_set1_ph(static_cast<_Float16>(x)); }

ANYDML_HALF_BODY Halves Load(const std::byte* from) { return _mm512_castsi512_ph(_mm512_loadu_si512(from)); }

ANYDML_HALF_BODY Halves LoadFirst(const std::byte* from) {
  return _mm512_castsi512_ph(_mm512_set1_epi16(*reinterpret_cast<const int16_t*>(from)));
}

ANYDML_HALF_BODY void Store(Halves x, bool streams, std::byte* to) {
  if (streams) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_castph_si512(x));
  } else {
    _mm512_storeu_si512(to, _mm512_castph_si512(x));
  }
}

ANYDML_HALF_BODY void Store(Truths truths, bool streams, std::byte* to) {
  const __m256i bytes = _mm256_maskz_set1_epi8(truths, 1);
  if (streams) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), bytes);
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  }
}

// A whole cache line, which goes to memory as one.
ANYDML_HALF_BODY void Store(Truths first, Truths second, bool streams, std::byte* to) {
  const __m512i bytes = _mm512_maskz_set1_epi8(_mm512_kunpackd(second, first), 1);
  if (streams) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), bytes);
  } else {
    _mm512_storeu_si512(to, bytes);
  }
}

ANYDML_HALF_BODY Halves NanWhere(Truths nan, Halves x) {
  return _mm512_castsi512_ph(_mm512_mask_mov_epi16(_mm512_castph_si512(x), nan, _mm512_set1_epi16(0x7E00)));
}
// Which NaN an operation on NaNs returns depends on operand order: make it canonical.
ANYDML_HALF_BODY Halves OneNan(Halves x) { return NanWhere(_mm512_fpclass_ph_mask(x, 0x81), x); }

// For numbers, not NaNs. If both are zeros, the instruction returns the second.
ANYDML_HALF_BODY Halves Larger(Halves a, Halves b) {
  return _mm512_castsi512_ph(
      _mm512_and_si512(_mm512_castph_si512(_mm512_max_ph(a, b)), _mm512_castph_si512(_mm512_max_ph(b, a))));
}
ANYDML_HALF_BODY Halves Smaller(Halves a, Halves b) {
  return _mm512_castsi512_ph(
      _mm512_or_si512(_mm512_castph_si512(_mm512_min_ph(a, b)), _mm512_castph_si512(_mm512_min_ph(b, a))));
}

ANYDML_HALF_BODY Halves Sum(Halves a, Halves b) { return _mm512_add_ph(a, b); }
ANYDML_HALF_BODY Halves Difference(Halves a, Halves b) { return _mm512_sub_ph(a, b); }
ANYDML_HALF_BODY Halves Product(Halves a, Halves b) { return _mm512_mul_ph(a, b); }
ANYDML_HALF_BODY Halves Maximum(Halves a, Halves b) {
  return NanWhere(_mm512_cmp_ph_mask(a, b, _CMP_UNORD_Q), Larger(a, b));
}
ANYDML_HALF_BODY Halves Minimum(Halves a, Halves b) {
  return NanWhere(_mm512_cmp_ph_mask(a, b, _CMP_UNORD_Q), Smaller(a, b));
}

// The larger one, or `low` if -0 is compared with +0; NaNs are kept.
ANYDML_HALF_BODY Halves AtLeast(Halves x, Halves low) {
  return _mm512_mask_blend_ph(_mm512_cmp_ph_mask(x, low, _CMP_LE_OQ), x, low);
}
// `high` is not 0: the instruction returns the second operand if one is NaN or both are zeros.
ANYDML_HALF_BODY Halves AtMost(Halves x, Halves high) { return _mm512_min_ph(high, x); }

template <HalfFunction kFunction>
ANYDML_HALF_BODY Truths Compare(Halves a, Halves b) {
  switch (kFunction) {
    case HalfFunction::kEqual:
      return _mm512_cmp_ph_mask(a, b, _CMP_EQ_OQ);
    case HalfFunction::kGreater:
      return _mm512_cmp_ph_mask(a, b, _CMP_GT_OQ);
    case HalfFunction::kLess:
      return _mm512_cmp_ph_mask(a, b, _CMP_LT_OQ);
    case HalfFunction::kGreaterOrEqual:
      return _mm512_cmp_ph_mask(a, b, _CMP_GE_OQ);
    default:
      return _mm512_cmp_ph_mask(a, b, _CMP_LE_OQ);
  }
}
#else
constexpr uint64_t kLanes = 8;
using Halves = float16x8_t;
using Truths = uint16x8_t;

bool HasHalfVectors() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDHP) != 0; }

ANYDML_HALF_BODY Halves All(float x) { return vdupq_n_f16(static_cast<float16_t>(x)); }

ANYDML_HALF_BODY Halves Load(const std::byte* from) {
  return vreinterpretq_f16_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(from)));
}

ANYDML_HALF_BODY Halves LoadFirst(const std::byte* from) {
  return vreinterpretq_f16_u16(vld1q_dup_u16(reinterpret_cast<const uint16_t*>(from)));
}

ANYDML_HALF_BODY void Store(Halves x, bool, std::byte* to) {
  vst1q_u16(reinterpret_cast<uint16_t*>(to), vreinterpretq_u16_f16(x));
}

ANYDML_HALF_BODY void Store(Truths truths, bool, std::byte* to) {
  vst1_u8(reinterpret_cast<uint8_t*>(to), vand_u8(vmovn_u16(truths), vdup_n_u8(1)));
}

ANYDML_HALF_BODY void Store(Truths first, Truths second, bool, std::byte* to) {
  const uint8x16_t bytes = vuzp1q_u8(vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
  vst1q_u8(reinterpret_cast<uint8_t*>(to), vandq_u8(bytes, vdupq_n_u8(1)));
}

// Which NaN an operation on NaNs returns depends on operand order: make it canonical.
ANYDML_HALF_BODY Halves OneNan(Halves x) {
  return vbslq_f16(vceqq_f16(x, x), x, vreinterpretq_f16_u16(vdupq_n_u16(0x7E00)));
}

ANYDML_HALF_BODY Halves Sum(Halves a, Halves b) { return vaddq_f16(a, b); }
ANYDML_HALF_BODY Halves Difference(Halves a, Halves b) { return vsubq_f16(a, b); }
ANYDML_HALF_BODY Halves Product(Halves a, Halves b) { return vmulq_f16(a, b); }
ANYDML_HALF_BODY Halves Maximum(Halves a, Halves b) { return OneNan(vmaxq_f16(a, b)); }
ANYDML_HALF_BODY Halves Minimum(Halves a, Halves b) { return OneNan(vminq_f16(a, b)); }

// Keeps NaNs and orders -0 before +0.
ANYDML_HALF_BODY Halves AtLeast(Halves x, Halves low) { return vmaxq_f16(x, low); }
ANYDML_HALF_BODY Halves AtMost(Halves x, Halves high) { return vminq_f16(x, high); }

template <HalfFunction kFunction>
ANYDML_HALF_BODY Truths Compare(Halves a, Halves b) {
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
#endif

}  // namespace
}  // namespace anydml
#endif
