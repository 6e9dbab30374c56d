// This file is compiled for Armv8.2 with dot products: it has nothing that other files could share.
#include "ops/integer_product/cpu/dot_kernel.h"

#if defined(__ARM_FEATURE_DOTPROD) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

namespace anydml {
namespace {

constexpr uint32_t kRows = 8, kColumns = 12;

// As the tile of floats: 8 rows of 3 vectors.
#define ANYDML_DOT_ROWS(V) V(0) V(1) V(2) V(3) V(4) V(5) V(6) V(7)
#define ANYDML_ZERO(i) int32x4_t c##i##0 = vdupq_n_s32(0), c##i##1 = c##i##0, c##i##2 = c##i##0;
#define ANYDML_STEP(i)                                                \
  c##i##0 = vdotq_laneq_s32(c##i##0, b0, (i) < 4 ? a0 : a1, (i) % 4); \
  c##i##1 = vdotq_laneq_s32(c##i##1, b1, (i) < 4 ? a0 : a1, (i) % 4); \
  c##i##2 = vdotq_laneq_s32(c##i##2, b2, (i) < 4 ? a0 : a1, (i) % 4);
#define ANYDML_PUT(i)                                 \
  Put(c##i##0, sums + (i)*to_stride, accumulate);     \
  Put(c##i##1, sums + (i)*to_stride + 4, accumulate); \
  Put(c##i##2, sums + (i)*to_stride + 8, accumulate);

inline __attribute__((always_inline)) void Put(int32x4_t value, int32_t* to, bool accumulate) {
  uint32x4_t sum = vreinterpretq_u32_s32(value);  // wraps
  if (accumulate) sum = vaddq_u32(vreinterpretq_u32_s32(vld1q_s32(to)), sum);
  vst1q_s32(to, vreinterpretq_s32_u32(sum));
}

void Run(const float* a_words, const float* b_words, uint64_t b_stride, uint64_t steps, float* to,
         uint64_t to_stride, bool accumulate) {
  const auto* a = reinterpret_cast<const int8_t*>(a_words);
  const auto* b = reinterpret_cast<const int8_t*>(b_words);
  auto* const sums = reinterpret_cast<int32_t*>(to);
  for (uint32_t i = 0; i < kRows; ++i) {
    __builtin_prefetch(sums + i * to_stride);
    __builtin_prefetch(sums + i * to_stride + kColumns - 1);
  }
  ANYDML_DOT_ROWS(ANYDML_ZERO)
  for (uint64_t step = 0; step < steps; ++step) {
    const int8x16_t a0 = vld1q_s8(a), a1 = vld1q_s8(a + 16);
    const int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16), b2 = vld1q_s8(b + 32);
    ANYDML_DOT_ROWS(ANYDML_STEP)
    a += kRows * kStepsOfWord;
    b += b_stride * kStepsOfWord;
  }
  ANYDML_DOT_ROWS(ANYDML_PUT)
}

constexpr MicroKernel kKernel = {kRows, kColumns, &Run, /*bytes=*/true};

}  // namespace

const MicroKernel* FindDotKernel() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? &kKernel : nullptr; }

}  // namespace anydml

#else

namespace anydml {
const MicroKernel* FindDotKernel() { return nullptr; }
}  // namespace anydml
#endif
