#include "ops/element/cpu/transpose.h"

#include <algorithm>

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/element/cpu/transpose.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
#else
namespace anydml {
#endif
namespace {

// How many columns ahead lines are asked for: enough of them to be on their way for memory to be busy. As
// into the second-level cache, since columns a power of two apart would drive each other out of the first.
constexpr uint64_t kAhead = 16;

template <typename T>
void AskFor(const T* column, uint64_t rows) {
  for (uint64_t r = 0; r < rows; r += 64 / sizeof(T)) __builtin_prefetch(column + r, 0, 2);
  __builtin_prefetch(column + rows - 1, 0, 2);
}

#if ANYDML_HAVE_HIGHWAY && HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

// A square of as many rows and columns as 16 bytes have elements.
struct Words {
  static constexpr uint64_t kSide = 4;
  static HWY_INLINE void Square(const uint32_t* from, uint64_t from_stride, uint32_t* to,
                                uint64_t to_stride) {
    const hn::FixedTag<uint32_t, 4> d;
    const hn::FixedTag<uint64_t, 2> dw;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
    const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
    const auto ab0 = hn::BitCast(dw, hn::InterleaveLower(d, a, b));
    const auto ab2 = hn::BitCast(dw, hn::InterleaveUpper(d, a, b));
    const auto ce0 = hn::BitCast(dw, hn::InterleaveLower(d, c, e));
    const auto ce2 = hn::BitCast(dw, hn::InterleaveUpper(d, c, e));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, ab0, ce0)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, ab0, ce0)), d, to + to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, ab2, ce2)), d, to + 2 * to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, ab2, ce2)), d, to + 3 * to_stride);
  }
};

struct HalfWords {
  static constexpr uint64_t kSide = 8;
  using D = hn::FixedTag<uint16_t, 8>;
  using DW = hn::FixedTag<uint32_t, 4>;

  // Pairs of the same row from two columns: four rows from `row` 0, or from 4.
  static HWY_INLINE hn::Vec<DW> Pairs(const uint16_t* from, uint64_t from_stride, bool upper) {
    const D d;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
    return hn::BitCast(DW(), upper ? hn::InterleaveUpper(d, a, b) : hn::InterleaveLower(d, a, b));
  }

  static HWY_INLINE void Square(const uint16_t* from, uint64_t from_stride, uint16_t* to,
                                uint64_t to_stride) {
    const DW dw;
    const hn::FixedTag<uint64_t, 2> dl;
    const D d;
    for (const bool upper : {false, true}) {
      const auto p0 = Pairs(from, from_stride, upper);
      const auto p2 = Pairs(from + 2 * from_stride, from_stride, upper);
      const auto p4 = Pairs(from + 4 * from_stride, from_stride, upper);
      const auto p6 = Pairs(from + 6 * from_stride, from_stride, upper);
      const auto left0 = hn::BitCast(dl, hn::InterleaveLower(dw, p0, p2));
      const auto left2 = hn::BitCast(dl, hn::InterleaveUpper(dw, p0, p2));
      const auto right0 = hn::BitCast(dl, hn::InterleaveLower(dw, p4, p6));
      const auto right2 = hn::BitCast(dl, hn::InterleaveUpper(dw, p4, p6));
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dl, left0, right0)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dl, left0, right0)), d, to + to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dl, left2, right2)), d, to + 2 * to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dl, left2, right2)), d, to + 3 * to_stride);
      to += 4 * to_stride;
    }
  }
};
#else
struct Words {
  static constexpr uint64_t kSide = 4;
  template <typename T>
  static void Square(const T* from, uint64_t from_stride, T* to, uint64_t to_stride) {
    for (uint64_t c = 0; c < kSide; ++c) {
      for (uint64_t r = 0; r < kSide; ++r) to[r * to_stride + c] = from[c * from_stride + r];
    }
  }
};
using HalfWords = Words;
#endif

template <class Squares, typename T>
void Transpose(const T* from, uint64_t column_stride, uint64_t rows, uint64_t columns, T* to) {
  constexpr uint64_t kSide = Squares::kSide;
  const uint64_t whole_columns = columns / kSide * kSide, whole_rows = rows / kSide * kSide;
  for (uint64_t c = 0; c < whole_columns; c += kSide) {
    const T* const column = from + c * column_stride;
    for (uint64_t k = 0; k < kSide; ++k) AskFor(column + (kAhead + k) * column_stride, rows);
    for (uint64_t r = 0; r < whole_rows; r += kSide) {
      Squares::Square(column + r, column_stride, to + r * columns + c, columns);
    }
  }
  for (uint64_t c = 0; c < columns; ++c) {
    for (uint64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r) {
      to[r * columns + c] = from[c * column_stride + r];
    }
  }
}

}  // namespace

void TransposeWords(const uint32_t* from, uint64_t column_stride, uint64_t rows, uint64_t columns,
                    uint32_t* to) {
  Transpose<Words>(from, column_stride, rows, columns, to);
}

void TransposeHalfWords(const uint16_t* from, uint64_t column_stride, uint64_t rows, uint64_t columns,
                        uint16_t* to) {
  Transpose<HalfWords>(from, column_stride, rows, columns, to);
}

#if ANYDML_HAVE_HIGHWAY
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#else
}  // namespace anydml
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {

#if ANYDML_HAVE_HIGHWAY
namespace {
HWY_EXPORT(TransposeWords);
HWY_EXPORT(TransposeHalfWords);
}  // namespace
#define ANYDML_BEST(function) HWY_DYNAMIC_DISPATCH(function)
#else
#define ANYDML_BEST(function) function
#endif

void TransposeBlock(const uint32_t* from, uint64_t column_stride, uint64_t rows, uint64_t columns,
                    uint32_t* to) {
  ANYDML_BEST(TransposeWords)(from, column_stride, rows, columns, to);
}

void TransposeBlock(const uint16_t* from, uint64_t column_stride, uint64_t rows, uint64_t columns,
                    uint16_t* to) {
  ANYDML_BEST(TransposeHalfWords)(from, column_stride, rows, columns, to);
}

}  // namespace anydml
#endif
