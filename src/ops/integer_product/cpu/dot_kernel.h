// Instructions that add up products of bytes, where the processor has them.
#pragma once

#include "ops/gemm/cpu/micro_kernel.h"

namespace anydml {

inline constexpr uint32_t kStepsOfWord = 4;
inline constexpr uint32_t kMaxDotWidth = 48;  // rows or columns of a tile

// Bytes of rows are signed. Those of columns are, too, for SDOT; x86 multiplies unsigned by signed ones.
#if defined(__x86_64__)
inline constexpr bool kUnsignedColumns = true;
#else
inline constexpr bool kUnsignedColumns = false;
#endif

// Of bytes that are not packed: for up to kMaxFewRows rows adds to their sums those over kFewSteps steps of
// a[row][step] * b[step][column], where `flip` is 0x80 if columns are signed. `count` is a multiple of
// `columns`. Of so many the sums have an order of their own: the first four of every 16, then the second four
// of every 16, and so on. `ahead` is how far behind these steps' bytes those are that will be wanted next; 0:
// there are none.
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
  Add* add = nullptr;  // null: there is none
};

// A micro-kernel of bytes (MicroKernel::bytes).
struct DotTile {
  MicroKernel kernel;
  // So many words of a row, or of a column, are neighbours in a panel, then come those of the next one: 1 is
  // the usual order. Steps are a multiple of row_words, which is one of column_words.
  uint32_t row_words = 1, column_words = 1;
  // Before and after a thread runs it, where that is needed.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};
inline constexpr uint32_t kMaxRowWords = 16, kMaxColumnWords = 2;

struct DotKernels {
  DotTile tile, one_row;
  FewDot few;
};
// Of this processor; null: it has no such instructions.
const DotKernels* FindDotKernels();
// For tests: these from now on. Null: this processor's.
void UseDotKernels(const DotKernels* kernels);

// Those of one instruction set. Null where the processor, or the compiler, does not know it.
const DotKernels* FindI8mmDot();
const DotKernels* FindNeonDot();
const DotKernels* FindAmxDot();
const DotKernels* FindAvx512Dot();
const DotKernels* FindAvxVnniDot();
const DotKernels* FindAvx2Dot();

}  // namespace anydml
