// Byte dot-product instructions, if the processor has them.
#pragma once

#include "ops/product/micro_kernel.h"

namespace anydml {

inline constexpr uint32_t kStepsOfWord = 4;
inline constexpr uint32_t kMaxDotWidth = 48;  // rows or columns of a tile

// Rows' bytes are signed. Columns' bytes are signed, too, for SDOT; x86 multiplies unsigned by signed bytes.
#if defined(__x86_64__)
inline constexpr bool kUnsignedColumns = true;
#else
inline constexpr bool kUnsignedColumns = false;
#endif

// For bytes that are not packed: for up to kMaxFewRows rows, adds to their sums those over kFewSteps steps of
// a[row][step] * b[step][column]; `flip` is 0x80 if columns are signed. `count` is a multiple of `columns`.
// Within that many columns the sums have a special order: the first four of every 16, then the second four of
// every 16, and so on. `ahead` is the distance in bytes to what should be prefetched; 0: nothing.
inline constexpr uint32_t kFewSteps = 2 * kStepsOfWord, kMaxFewRows = 5, kMaxFewColumns = 64;
struct FewBytes {
  const uint8_t* b[kFewSteps];
  uint64_t ahead;
  uint8_t flip;
};
struct FewDot {
  uint32_t columns = 0;
  using Add = void(const int8_t (*a)[kFewSteps], uint32_t rows, const FewBytes& bytes, uint64_t count,
                   int32_t* sums, uint64_t sums_stride);
  Add* add = nullptr;  // null: not available
};

// A micro-kernel for bytes (MicroKernel::bytes).
struct DotTile {
  MicroKernel kernel;
  // The number of a row's, or a column's, words that are contiguous in a panel before the next one's: 1 is
  // the usual order. Steps are a multiple of row_words, which is a multiple of column_words.
  uint32_t row_words = 1, column_words = 1;
  // To be called before and after a thread runs it; may be null.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};
inline constexpr uint32_t kMaxRowWords = 16, kMaxColumnWords = 2;

struct DotKernels {
  DotTile tile, one_row;
  FewDot few;
};
// For this processor; null if it has no such instructions.
const DotKernels* FindDotKernels();
// For tests: replaces the kernels; null restores this processor's.
void UseDotKernels(const DotKernels* kernels);

// The kernels of one instruction set. Null if the processor or the compiler does not support it.
const DotKernels* FindI8mmDot();
const DotKernels* FindNeonDot();
const DotKernels* FindAmxDot();
const DotKernels* FindAvx512Dot();
const DotKernels* FindAvxVnniDot();
const DotKernels* FindAvx2Dot();

}  // namespace anydml
