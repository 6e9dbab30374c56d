// This file is compiled for Armv8.6's byte matrix products: it must not contain anything that the linker
// could share with other files.
#include "ops/integer_product/cpu/dot_kernel.h"

#if defined(__ARM_FEATURE_MATMUL_INT8) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

namespace anydml {
namespace {

// SMMLA adds to 2 x 2 sums the products of two rows and two columns over eight steps: panels have two words
// of a row, and of a column, side by side.
constexpr uint32_t kPairs = 4, kLanes = 4, kPairWords = 2;  // pairs of rows
constexpr uint64_t kVector = 16, kPairBytes = kPairWords * kStepsOfWord;

// As MicroKernel::Run, with the first kUsed vectors of columns.
template <uint32_t kUsed>
void RunPairs(const float* a_words, const float* b_words, uint64_t b_stride, uint64_t steps, float* to,
              uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& /*ahead*/) {
  const auto* a = reinterpret_cast<const int8_t*>(a_words);
  const auto* b = reinterpret_cast<const int8_t*>(b_words);
  auto* const sums = reinterpret_cast<int32_t*>(to);
  const auto of_row = [&](uint32_t row, uint32_t vector) { return sums + row * to_stride + vector * kLanes; };
  int64x2_t c[kPairs][2 * kUsed];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kPairs; ++i) {
#pragma GCC unroll 3
    for (uint32_t v = 0; v < kUsed; ++v) {
      c[i][2 * v] = c[i][2 * v + 1] = vdupq_n_s64(0);
      if (!accumulate) continue;
      const int64x2_t first = vreinterpretq_s64_s32(vld1q_s32(of_row(2 * i, v)));
      const int64x2_t second = vreinterpretq_s64_s32(vld1q_s32(of_row(2 * i + 1, v)));
      c[i][2 * v] = vzip1q_s64(first, second);
      c[i][2 * v + 1] = vzip2q_s64(first, second);
    }
  }
  for (uint64_t step = 0; step < steps; step += kPairWords) {
    int8x16_t rows[kPairs];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kPairs; ++i) rows[i] = vld1q_s8(a + i * kVector);
#pragma GCC unroll 6
    for (uint32_t j = 0; j < 2 * kUsed; ++j) {
      const int8x16_t columns = vld1q_s8(b + j * kVector);
#pragma GCC unroll 4
      for (uint32_t i = 0; i < kPairs; ++i) {
        c[i][j] = vreinterpretq_s64_s32(vmmlaq_s32(vreinterpretq_s32_s64(c[i][j]), rows[i], columns));
      }
      asm volatile("" ::: "memory");  // compilers that load all columns first run out of registers
    }
    a += kPairs * kVector;
    b += b_stride * kPairBytes;
  }
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kPairs; ++i) {
#pragma GCC unroll 3
    for (uint32_t v = 0; v < kUsed; ++v) {
      const int64x2_t x = c[i][2 * v], y = c[i][2 * v + 1];
      vst1q_s32(of_row(2 * i, v), vreinterpretq_s32_s64(vzip1q_s64(x, y)));
      vst1q_s32(of_row(2 * i + 1, v), vreinterpretq_s32_s64(vzip2q_s64(x, y)));
    }
  }
}

constexpr DotTile kTile = {
    {2 * kPairs, 3 * kLanes, kLanes, &RunPairs<3>, {&RunPairs<1>, &RunPairs<2>}, /*bytes=*/true},
    /*row_words=*/kPairWords,
    /*column_words=*/kPairWords};

}  // namespace

const DotKernels* FindI8mmDot() {
  static const DotKernels* const found = []() -> const DotKernels* {
    const DotKernels* const others = FindNeonDot();  // for few rows
    if (others == nullptr || (getauxval(AT_HWCAP2) & HWCAP2_I8MM) == 0) return nullptr;
    static DotKernels kernels = *others;
    kernels.tile = kTile;
    return &kernels;
  }();
  return found;
}

}  // namespace anydml

#else

namespace anydml {
const DotKernels* FindI8mmDot() { return nullptr; }
}  // namespace anydml
#endif
