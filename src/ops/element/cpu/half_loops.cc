// This file is compiled for Armv8.2 with FLOAT16 arithmetic, or for AVX-512 with it: it has nothing that
// other files could share.
#include "ops/element/cpu/half_loops.h"

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

// Bit 23: not all compilers that know the instructions know its name.
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

ANYDML_HALF_BODY Halves NanWhere(Truths nan, Halves x) {
  return _mm512_castsi512_ph(_mm512_mask_mov_epi16(_mm512_castph_si512(x), nan, _mm512_set1_epi16(0x7E00)));
}
// Which NaN comes of NaNs depends on their order: one and the same.
ANYDML_HALF_BODY Halves OneNan(Halves x) { return NanWhere(_mm512_fpclass_ph_mask(x, 0x81), x); }

// Of numbers. Where both are zeros, the instructions give the second.
ANYDML_HALF_BODY Halves Larger(Halves a, Halves b) {
  return _mm512_castsi512_ph(
      _mm512_and_si512(_mm512_castph_si512(_mm512_max_ph(a, b)), _mm512_castph_si512(_mm512_max_ph(b, a))));
}
ANYDML_HALF_BODY Halves Smaller(Halves a, Halves b) {
  return _mm512_castsi512_ph(
      _mm512_or_si512(_mm512_castph_si512(_mm512_min_ph(a, b)), _mm512_castph_si512(_mm512_min_ph(b, a))));
}

ANYDML_HALF_BODY Halves Sum(Halves a, Halves b) { return OneNan(_mm512_add_ph(a, b)); }
ANYDML_HALF_BODY Halves Difference(Halves a, Halves b) { return OneNan(_mm512_sub_ph(a, b)); }
ANYDML_HALF_BODY Halves Product(Halves a, Halves b) { return OneNan(_mm512_mul_ph(a, b)); }
ANYDML_HALF_BODY Halves Maximum(Halves a, Halves b) {
  return NanWhere(_mm512_cmp_ph_mask(a, b, _CMP_UNORD_Q), Larger(a, b));
}
ANYDML_HALF_BODY Halves Minimum(Halves a, Halves b) {
  return NanWhere(_mm512_cmp_ph_mask(a, b, _CMP_UNORD_Q), Smaller(a, b));
}

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

// Which NaN comes of NaNs depends on their order: one and the same.
ANYDML_HALF_BODY Halves OneNan(Halves x) {
  return vbslq_f16(vceqq_f16(x, x), x, vreinterpretq_f16_u16(vdupq_n_u16(0x7E00)));
}

ANYDML_HALF_BODY Halves Sum(Halves a, Halves b) { return OneNan(vaddq_f16(a, b)); }
ANYDML_HALF_BODY Halves Difference(Halves a, Halves b) { return OneNan(vsubq_f16(a, b)); }
ANYDML_HALF_BODY Halves Product(Halves a, Halves b) { return OneNan(vmulq_f16(a, b)); }
ANYDML_HALF_BODY Halves Maximum(Halves a, Halves b) { return OneNan(vmaxq_f16(a, b)); }
ANYDML_HALF_BODY Halves Minimum(Halves a, Halves b) { return OneNan(vminq_f16(a, b)); }

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

// `low` and `high`, rounded: rounding keeps the order, so that clamping before it is clamping after it.
template <HalfFunction kFunction>
ANYDML_HALF_BODY Halves Call(Halves a, Halves b, Halves low, Halves high) {
  switch (kFunction) {
    case HalfFunction::kAdd:
      return Sum(a, b);
    case HalfFunction::kSubtract:
      return Difference(a, b);
    case HalfFunction::kMultiply:
      return Product(a, b);
    case HalfFunction::kMaximum:
      return Maximum(a, b);
    case HalfFunction::kMinimum:
      return Minimum(a, b);
    case HalfFunction::kClip:
      return Maximum(low, Minimum(a, high));
    default:
      return Maximum(a, All(0));
  }
}

template <HalfFunction kFunction>
void Run(const LoopPiece& piece) {
  constexpr bool kOne = kFunction == HalfFunction::kClip || kFunction == HalfFunction::kRelu;
  const std::byte *a = piece.sources[0], *b = kOne ? a : piece.sources[1];
  const uint64_t a_step = kLanes * piece.steps[0], b_step = kOne ? a_step : kLanes * piece.steps[1];
  const uint64_t a_row = piece.row_steps[0], b_row = piece.row_steps[1], to_row = piece.target_row_step;
  const Halves low = All(piece.low), high = All(piece.high);
  // What all elements have in common was written just now, by shorter vectors than these: read as one of
  // these it would have to reach a cache first, behind the row before, which is on its way to memory.
  const bool a_same = a_step == 0, b_same = b_step == 0;
  const Halves a_first = LoadFirst(a), b_first = LoadFirst(b);
  const uint64_t count = piece.count;
  const bool streams = piece.streams;
  std::byte* to = piece.target;
  for (uint64_t rows = piece.rows; rows != 0; --rows, a += a_row, b += b_row, to += to_row) {
    const std::byte *x_at = a, *y_at = b;
    std::byte* result_at = to;
    for (uint64_t left = count; left != 0; left -= kLanes, x_at += a_step, y_at += b_step) {
      const Halves x = a_same ? a_first : Load(x_at), y = kOne ? x : b_same ? b_first : Load(y_at);
      if constexpr (kFunction >= HalfFunction::kEqual) {
        Store(Compare<kFunction>(x, y), streams, result_at);
        result_at += kLanes;
      } else {
        Store(Call<kFunction>(x, y, low, high), streams, result_at);
        result_at += kLanes * sizeof(uint16_t);
      }
    }
  }
}

}  // namespace

HalfLoop FindHalfLoop(HalfFunction function, uint32_t granule) {
  static const bool has_them = HasHalfVectors();
  if (granule % kLanes != 0 || !has_them) return nullptr;
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
HalfLoop FindHalfLoop(HalfFunction, uint32_t) { return nullptr; }
}  // namespace anydml
#endif
