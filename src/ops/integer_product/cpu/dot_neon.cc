// This file is compiled for Armv8.2 with dot products: it must not contain anything that the linker could
// share with other files.
#include "ops/integer_product/cpu/dot_kernel.h"

#if defined(__ARM_FEATURE_DOTPROD) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "ops/integer_product/cpu/dot_tile.h"

namespace anydml {
namespace {

constexpr uint32_t kRows = 8, kColumns = 12, kLanes = 4;

// As the FLOAT32 tile: 8 rows of 3 vectors.
#define ANYDML_DOT_ROWS(V) V(0) V(1) V(2) V(3) V(4) V(5) V(6) V(7)
#define ANYDML_ZERO(i) int32x4_t c##i##0 = vdupq_n_s32(0), c##i##1 = c##i##0, c##i##2 = c##i##0;
#define ANYDML_STEP(i)                                                               \
  c##i##0 = vdotq_laneq_s32(c##i##0, b0, (i) < 4 ? a0 : a1, (i) % 4);                \
  if (kUsed > 1) c##i##1 = vdotq_laneq_s32(c##i##1, b1, (i) < 4 ? a0 : a1, (i) % 4); \
  if (kUsed > 2) c##i##2 = vdotq_laneq_s32(c##i##2, b2, (i) < 4 ? a0 : a1, (i) % 4);
#define ANYDML_PUT(i)                                                     \
  Put(c##i##0, sums + (i)*to_stride, accumulate);                         \
  if (kUsed > 1) Put(c##i##1, sums + (i)*to_stride + kLanes, accumulate); \
  if (kUsed > 2) Put(c##i##2, sums + (i)*to_stride + 2 * kLanes, accumulate);

inline __attribute__((always_inline)) void Put(int32x4_t value, int32_t* to, bool accumulate) {
  uint32x4_t sum = vreinterpretq_u32_s32(value);  // wraps
  if (accumulate) sum = vaddq_u32(vreinterpretq_u32_s32(vld1q_s32(to)), sum);
  vst1q_s32(to, vreinterpretq_s32_u32(sum));
}

// With the first kUsed vectors.
template <uint32_t kUsed>
void Run(const float* a_words, const float* b_words, uint64_t b_stride, uint64_t steps, float* to,
         uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& /*ahead*/) {
  const auto* a = reinterpret_cast<const int8_t*>(a_words);
  const auto* b = reinterpret_cast<const int8_t*>(b_words);
  auto* const sums = reinterpret_cast<int32_t*>(to);
  for (uint32_t i = 0; i < kRows; ++i) {
    __builtin_prefetch(sums + i * to_stride);
    __builtin_prefetch(sums + i * to_stride + kUsed * kLanes - 1);
  }
  ANYDML_DOT_ROWS(ANYDML_ZERO)
  for (uint64_t step = 0; step < steps; ++step) {
    const int8x16_t a0 = vld1q_s8(a), a1 = vld1q_s8(a + 16);
    const int8x16_t b0 = vld1q_s8(b);
    const int8x16_t b1 = kUsed > 1 ? vld1q_s8(b + 16) : b0, b2 = kUsed > 2 ? vld1q_s8(b + 32) : b0;
    ANYDML_DOT_ROWS(ANYDML_STEP)
    a += kRows * kStepsOfWord;
    b += b_stride * kStepsOfWord;
  }
  ANYDML_DOT_ROWS(ANYDML_PUT)
}

// One row. Two sums per column, because an addition waits for the previous one.
template <uint32_t kUsed>
void RunRow(const float* a_words, const float* b_words, uint64_t b_stride, uint64_t steps, float* to,
            uint64_t, bool accumulate, const MicroKernel::Ahead& /*ahead*/) {
  const auto* a = reinterpret_cast<const int8_t*>(a_words);
  const auto* b = reinterpret_cast<const int8_t*>(b_words);
  auto* const sums = reinterpret_cast<int32_t*>(to);
  int32x4_t s[kUsed], t[kUsed];
  for (uint32_t v = 0; v < kUsed; ++v) s[v] = t[v] = vdupq_n_s32(0);
  const uint64_t stride = b_stride * kStepsOfWord;
  const auto load = [](const int8_t* words, uint32_t v) { return vld1q_s8(words + v * 16); };
  const auto repeat = [](const int8_t* word) {
    return vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const int32_t*>(word)));
  };
  uint64_t step = 0;
  for (; step + 2 <= steps; step += 2, a += 2 * kStepsOfWord, b += 2 * stride) {
    const int8x16_t x = repeat(a), y = repeat(a + kStepsOfWord);
    for (uint32_t v = 0; v < kUsed; ++v) {
      s[v] = vdotq_s32(s[v], load(b, v), x);
      t[v] = vdotq_s32(t[v], load(b + stride, v), y);
    }
  }
  if (step < steps) {
    for (uint32_t v = 0; v < kUsed; ++v) s[v] = vdotq_s32(s[v], load(b, v), repeat(a));
  }
  for (uint32_t v = 0; v < kUsed; ++v) {
    Put(s[v], sums + v * kLanes, accumulate);
    Put(t[v], sums + v * kLanes, true);
  }
}

// For rows that are read in place.
struct Words128 : WholeWords {
  using Vector = int8x16_t;
  static constexpr uint32_t kLanes = 4;
  static ANYDML_DOT_BODY Vector Load(const void* from) { return vld1q_s8(static_cast<const int8_t*>(from)); }
  static ANYDML_DOT_BODY Vector Repeat(const int8_t* word, uint32_t) {
    int32_t bytes;
    __builtin_memcpy(&bytes, word, sizeof(bytes));
    return vreinterpretq_s8_s32(vdupq_n_s32(bytes));
  }
  static ANYDML_DOT_BODY Vector Dot(Vector sums, Vector columns, Vector row) {
    return vreinterpretq_s8_s32(vdotq_s32(vreinterpretq_s32_s8(sums), columns, row));
  }
  static ANYDML_DOT_BODY Vector Flip(Vector bytes, uint8_t flip) {
    return veorq_s8(bytes, vdupq_n_s8(static_cast<int8_t>(flip)));
  }
  static ANYDML_DOT_BODY Vector LowBytes(Vector a, Vector b) { return vzip1q_s8(a, b); }
  static ANYDML_DOT_BODY Vector HighBytes(Vector a, Vector b) { return vzip2q_s8(a, b); }
  static ANYDML_DOT_BODY Vector LowPairs(Vector a, Vector b) {
    return vreinterpretq_s8_s16(vzip1q_s16(vreinterpretq_s16_s8(a), vreinterpretq_s16_s8(b)));
  }
  static ANYDML_DOT_BODY Vector HighPairs(Vector a, Vector b) {
    return vreinterpretq_s8_s16(vzip2q_s16(vreinterpretq_s16_s8(a), vreinterpretq_s16_s8(b)));
  }
  static ANYDML_DOT_BODY void Put(Vector sums, int32_t* to, bool) {
    vst1q_s32(to, vreinterpretq_s32_s8(sums));
  }
};

constexpr DotKernels kKernels = {
    {{kRows, kColumns, kLanes, &Run<3>, {&Run<1>, &Run<2>}, /*bytes=*/true}},
    {{1, kColumns, kLanes, &RunRow<3>, {&RunRow<1>, &RunRow<2>}, /*bytes=*/true}},
    {4 * Words128::kLanes, &AddFewRows<Words128>}};

}  // namespace

const DotKernels* FindNeonDot() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0 ? nullptr : &kKernels; }

}  // namespace anydml

#else

namespace anydml {
const DotKernels* FindNeonDot() { return nullptr; }
}  // namespace anydml
#endif
