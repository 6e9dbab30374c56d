#include "ops/common/transpose_block.h"

#include <algorithm>
#include <cstring>

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/common/transpose_block.cc"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
#else
namespace anydml {
#endif
namespace {

#if ANYDML_HAVE_HIGHWAY && HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

// A square of as many rows and columns as 16 bytes have elements.
struct Words {
  using Element = uint32_t;
  static constexpr uint64_t kSide = 4;
  static HWY_INLINE void Square(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
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
  using Element = uint16_t;
  static constexpr uint64_t kSide = 8;
  using D = hn::FixedTag<uint16_t, 8>;
  using DW = hn::FixedTag<uint32_t, 4>;

  // Pairs of the same row from two columns: four rows from `row` 0, or from 4.
  static HWY_INLINE hn::Vec<DW> Pairs(const uint16_t* from, int64_t from_stride, bool upper) {
    const D d;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
    return hn::BitCast(DW(), upper ? hn::InterleaveUpper(d, a, b) : hn::InterleaveLower(d, a, b));
  }

  static HWY_INLINE void Square(const uint16_t* from, int64_t from_stride, uint16_t* to, int64_t to_stride) {
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
template <typename T>
struct PlainSquares {
  using Element = T;
  static constexpr uint64_t kSide = 4;
  static void Square(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
    for (int64_t c = 0; c < 4; ++c) {
      for (int64_t r = 0; r < 4; ++r) {
        std::memcpy(to + r * to_stride + c, from + c * from_stride + r,
                    sizeof(T));  // neither need be aligned
      }
    }
  }
};
using Words = PlainSquares<uint32_t>;
using HalfWords = PlainSquares<uint16_t>;
#endif

constexpr uint64_t kLineBytes = 64;

// Where a block is on both sides.
template <typename T>
struct Sides {
  const T* from;
  int64_t from_stride;
  T* to;
  int64_t to_stride;

  const T* From(uint64_t row, uint64_t column) const {
    return from + static_cast<int64_t>(column) * from_stride + row;
  }
  T* To(uint64_t row, uint64_t column) const { return to + static_cast<int64_t>(row) * to_stride + column; }
};

// How many columns ahead lines are asked for: enough of them to be on their way for memory to be busy. As
// into the second-level cache, since columns a power of two apart would drive each other out of the first.
constexpr uint64_t kAhead = 16;
// Of a column, where the next ones are asked for so, not its own next lines.
[[maybe_unused]] constexpr uint64_t kFewBytes = 128;

template <typename T>
void AskFor(const T* column, uint64_t rows) {
  for (uint64_t r = 0; r < rows; r += kLineBytes / sizeof(T)) __builtin_prefetch(column + r, 0, 2);
  __builtin_prefetch(column + rows - 1, 0, 2);
}

// Rows and columns from these on, square by square, column by column.
template <class Squares, typename T = typename Squares::Element>
void TransposeColumns(const Sides<T>& sides, uint64_t first_row, uint64_t rows, uint64_t first_column,
                      uint64_t columns, bool asks) {
  constexpr uint64_t kSide = Squares::kSide;
  const uint64_t whole_columns = first_column + (columns - first_column) / kSide * kSide;
  const uint64_t whole_rows = first_row + (rows - first_row) / kSide * kSide;
  for (uint64_t c = first_column; c < whole_columns; c += kSide) {
    for (uint64_t k = 0; asks && k < kSide; ++k) {
      AskFor(sides.From(first_row, c + kAhead + k), rows - first_row);
    }
    for (uint64_t r = first_row; r < whole_rows; r += kSide) {
      Squares::Square(sides.From(r, c), sides.from_stride, sides.To(r, c), sides.to_stride);
    }
  }
  for (uint64_t c = first_column; c < columns; ++c) {
    for (uint64_t r = c < whole_columns ? whole_rows : first_row; r < rows; ++r) {
      std::memcpy(sides.To(r, c), sides.From(r, c), sizeof(T));  // neither need be aligned
    }
  }
}

#if ANYDML_HAVE_HIGHWAY && HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX2)
// Squares of whole vectors. Of 64 bytes, they are read and written line by line: nothing is lost where lines
// of several columns have no room beside each other in a cache, as those a power of two apart.
constexpr size_t kVectorBytes = HWY_TARGET <= HWY_AVX3 ? 64 : 32, kBlocks = kVectorBytes / 16;
using DWords = hn::FixedTag<uint32_t, kVectorBytes / 4>;
using VWords = hn::Vec<DWords>;
constexpr size_t kWords = kVectorBytes / 4;

// Rows become columns.
HWY_INLINE void TurnWords(VWords (&v)[kWords]) {
  const DWords d;
  const hn::Repartition<uint64_t, DWords> dl;
  for (size_t q = 0; q < kWords; q += 4) {  // squares of 4 by 4 in each block of 16 bytes
    const auto ab0 = hn::BitCast(dl, hn::InterleaveLower(d, v[q], v[q + 1]));
    const auto ab2 = hn::BitCast(dl, hn::InterleaveUpper(d, v[q], v[q + 1]));
    const auto ce0 = hn::BitCast(dl, hn::InterleaveLower(d, v[q + 2], v[q + 3]));
    const auto ce2 = hn::BitCast(dl, hn::InterleaveUpper(d, v[q + 2], v[q + 3]));
    v[q] = hn::BitCast(d, hn::InterleaveLower(dl, ab0, ce0));
    v[q + 1] = hn::BitCast(d, hn::InterleaveUpper(dl, ab0, ce0));
    v[q + 2] = hn::BitCast(d, hn::InterleaveLower(dl, ab2, ce2));
    v[q + 3] = hn::BitCast(d, hn::InterleaveUpper(dl, ab2, ce2));
  }
  for (size_t j = 0; j < 4; ++j) {  // then the blocks
    if constexpr (kBlocks == 2) {
      const VWords a = v[j], b = v[4 + j];
      v[j] = hn::ConcatLowerLower(d, b, a);
      v[4 + j] = hn::ConcatUpperUpper(d, b, a);
    } else {
      const VWords a = v[j], b = v[4 + j], c = v[8 + j], e = v[12 + j];
      const VWords ab0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      const VWords ab1 = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
      const VWords ce0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(e), c);
      const VWords ce1 = hn::OddEvenBlocks(e, hn::SwapAdjacentBlocks(c));
      v[j] = hn::ConcatLowerLower(d, ce0, ab0);
      v[4 + j] = hn::ConcatLowerLower(d, ce1, ab1);
      v[8 + j] = hn::ConcatUpperUpper(d, ce0, ab0);
      v[12 + j] = hn::ConcatUpperUpper(d, ce1, ab1);
    }
  }
}

template <bool kStreams>
HWY_INLINE void Put(VWords v, void* to) {
  const DWords d;
  if constexpr (kStreams) {
    hn::Stream(v, d, static_cast<uint32_t*>(to));
  } else {
    hn::StoreU(v, d, static_cast<uint32_t*>(to));
  }
}

// How far ahead along the columns lines are asked for on their way to a tile. What goes to a tensor does not
// need it: its columns are followed for so long that the machine sees them coming, and that is not held up by
// requests.
constexpr size_t kBytesAhead = 512;

template <bool kAsks>
HWY_INLINE void AskAhead(const void* from) {
  if constexpr (kAsks) __builtin_prefetch(static_cast<const uint8_t*>(from) + kBytesAhead);
}

struct WideWords {
  using Element = uint32_t;
  static constexpr uint64_t kSide = kWords;
  template <bool kStreams, bool kAsks>
  static HWY_INLINE void Square(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
    VWords v[kWords];
    for (size_t i = 0; i < kWords; ++i, from += from_stride) {
      v[i] = hn::LoadU(DWords(), from);
      AskAhead<kAsks>(from);
    }
    TurnWords(v);
    for (size_t i = 0; i < kWords; ++i, to += to_stride) Put<kStreams>(v[i], to);
  }
};

struct WideHalfWords {
  using Element = uint16_t;
  static constexpr uint64_t kSide = 2 * kWords;
  template <bool kStreams, bool kAsks>
  static HWY_INLINE void Square(const uint16_t* from, int64_t from_stride, uint16_t* to, int64_t to_stride) {
    const hn::Repartition<uint16_t, DWords> d;
    // Pairs of the same row from two columns: of each block's rows the first four, and the others.
    VWords first[kWords], second[kWords];
    for (size_t i = 0; i < kWords; ++i, from += 2 * from_stride) {
      const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
      AskAhead<kAsks>(from);
      AskAhead<kAsks>(from + from_stride);
      first[i] = hn::BitCast(DWords(), hn::InterleaveLower(d, a, b));
      second[i] = hn::BitCast(DWords(), hn::InterleaveUpper(d, a, b));
    }
    const auto put = [&](const VWords(&rows)[kWords], size_t begin) HWY_ATTR {
      for (size_t i = 0; i < kWords; ++i) {
        Put<kStreams>(rows[i], to + static_cast<int64_t>(i / 4 * 8 + i % 4 + begin) * to_stride);
      }
    };
    TurnWords(first);
    put(first, 0);
    TurnWords(second);
    put(second, 4);
  }
};

// Some lines of the target, one below the other, each from several squares.
template <class Squares, typename T = typename Squares::Element>
HWY_INLINE void StreamSquares(const Sides<T>& sides, uint64_t r, uint64_t c) {
  constexpr uint64_t kSide = Squares::kSide, kLineElements = kLineBytes / sizeof(T);
  if constexpr (kSide == kLineElements) {
    Squares::template Square<true, false>(sides.From(r, c), sides.from_stride, sides.To(r, c),
                                          sides.to_stride);
  } else {
    alignas(kLineBytes) T lines[kSide * kLineElements];
    for (uint64_t i = 0; i < kLineElements; i += kSide) {
      Squares::template Square<false, false>(sides.From(r, c + i), sides.from_stride, lines + i,
                                             kLineElements);
    }
    for (uint64_t row = 0; row < kSide; ++row) {
      for (uint64_t i = 0; i < kLineElements; i += kSide) {
        const auto* const words = reinterpret_cast<const uint32_t*>(lines + row * kLineElements + i);
        Put<true>(hn::Load(DWords(), words), sides.To(r + row, c + i));
      }
    }
  }
}

// `kLines` of the target's beside each other, along the columns as far as rows go. How many columns are done.
template <class Squares, uint64_t kLines, TransposeTo kTo, typename T = typename Squares::Element>
uint64_t TransposeLines(const Sides<T>& sides, uint64_t rows, uint64_t first_column, uint64_t columns) {
  constexpr uint64_t kSide = Squares::kSide;
  constexpr uint64_t kStep = kTo == TransposeTo::kStream ? kLineBytes / sizeof(T) : kSide;
  constexpr uint64_t kWidth = kLines * kStep;
  uint64_t c = first_column;
  for (; c + kWidth <= columns; c += kWidth) {
    if (kTo == TransposeTo::kTile && rows * sizeof(T) <= kFewBytes) {
      for (uint64_t k = 0; k < kWidth; ++k) AskFor(sides.From(0, c + kAhead + k), rows);
    }
    for (uint64_t r = 0; r + kSide <= rows; r += kSide) {
      for (uint64_t at = c; at < c + kWidth; at += kStep) {
        if constexpr (kTo == TransposeTo::kStream) {
          StreamSquares<Squares>(sides, r, at);
        } else {
          Squares::template Square<false, kTo == TransposeTo::kTile>(sides.From(r, at), sides.from_stride,
                                                                     sides.To(r, at), sides.to_stride);
        }
      }
    }
  }
  return c;
}

template <class Squares, class NarrowSquares, typename T = typename Squares::Element>
void Transpose(const Sides<T>& sides, uint64_t rows, uint64_t columns, TransposeTo where) {
  uint64_t done = 0;
  if (where == TransposeTo::kStream) {
    // Two lines that memory keeps side by side take less than twice the time of one.
    done = TransposeLines<Squares, 2, TransposeTo::kStream>(sides, rows, done, columns);
    done = TransposeLines<Squares, 1, TransposeTo::kStream>(sides, rows, done, columns);
  } else if (where == TransposeTo::kTensor) {
    done = TransposeLines<Squares, 1, TransposeTo::kTensor>(sides, rows, done, columns);
  } else {
    done = TransposeLines<Squares, 1, TransposeTo::kTile>(sides, rows, done, columns);
  }
  TransposeColumns<NarrowSquares>(sides, 0, rows, done, columns, false);
  TransposeColumns<NarrowSquares>(sides, rows / Squares::kSide * Squares::kSide, rows, 0, done, false);
}
#else
struct WideWords {};
struct WideHalfWords {};

template <class Squares, class NarrowSquares, typename T = typename NarrowSquares::Element>
void Transpose(const Sides<T>& sides, uint64_t rows, uint64_t columns, TransposeTo) {
  TransposeColumns<NarrowSquares>(sides, 0, rows, 0, columns, true);
}
#endif

}  // namespace

void TransposeWords(const uint32_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint32_t* to,
                    int64_t to_stride, TransposeTo where) {
  Transpose<WideWords, Words>({from, from_stride, to, to_stride}, rows, columns, where);
}

void TransposeHalfWords(const uint16_t* from, int64_t from_stride, uint64_t rows, uint64_t columns,
                        uint16_t* to, int64_t to_stride, TransposeTo where) {
  Transpose<WideHalfWords, HalfWords>({from, from_stride, to, to_stride}, rows, columns, where);
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

void TransposeBlock(const uint32_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint32_t* to,
                    int64_t to_stride, TransposeTo where) {
  ANYDML_BEST(TransposeWords)(from, from_stride, rows, columns, to, to_stride, where);
}

void TransposeBlock(const uint16_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint16_t* to,
                    int64_t to_stride, TransposeTo where) {
  ANYDML_BEST(TransposeHalfWords)(from, from_stride, rows, columns, to, to_stride, where);
}

#undef ANYDML_BEST
}  // namespace anydml
#endif
