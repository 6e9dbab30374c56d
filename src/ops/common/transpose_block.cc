#include "ops/common/transpose_block.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/common/best_target.h"

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

#include "ops/common/transpose_squares-inl.h"

constexpr uint64_t kLineBytes = 64;

// The place of a block on both sides.
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

// Prefetches the first two lines of a column: hardware prefetch follows a column, but does not know where the
// next one begins. Into L2, since columns a power of two apart would evict each other from L1.
template <typename T>
void AskForFirst(const T* column, uint64_t rows) {
  constexpr uint64_t kLine = kLineBytes / sizeof(T);
  __builtin_prefetch(column, 0, 2);
  if (rows > kLine) __builtin_prefetch(column + kLine, 0, 2);
}

// The prefetch distance in columns, several of which are prefetched together: enough lines in flight to
// saturate memory.
constexpr uint64_t kAhead = 16 * kLineBytes;
constexpr uint64_t AheadOf(uint64_t bytes, uint64_t column_bytes, uint64_t at_a_time) {
  return std::max<uint64_t>(1, bytes / std::max(column_bytes, kLineBytes) / at_a_time) * at_a_time;
}

// Prefetches a whole column, for processors whose prefetchers do not follow short ones.
template <typename T>
void AskForAll(const T* column, uint64_t rows) {
  for (uint64_t r = 0; r < rows; r += kLineBytes / sizeof(T)) __builtin_prefetch(column + r, 0, 2);
}

// Which columns are prefetched: none, those of this block, or also those after it, as far ahead as memory
// latency needs. FLOAT32 products of 4096 x 4096 with a transposed matrix, in tiles of 64 rows and 128
// columns, take 13 ms on a Neoverse V1 with the first kind and 10.5 with the second.
enum class Asks : uint8_t { kNone, kThese, kNext };
constexpr uint64_t kNextAhead = 4096;

// Rows and columns from these on, square by square, column by column.
template <class Squares, typename T = typename Squares::Element>
void TransposeColumns(const Sides<T>& sides, uint64_t first_row, uint64_t rows, uint64_t first_column,
                      uint64_t columns, Asks asks) {
  constexpr uint64_t kSide = Squares::kSide;
  const uint64_t whole_columns = first_column + (columns - first_column) / kSide * kSide;
  const uint64_t whole_rows = first_row + (rows - first_row) / kSide * kSide;
  const uint64_t ahead = AheadOf(kAhead, (rows - first_row) * sizeof(T), kSide);
  const uint64_t far_ahead = AheadOf(kNextAhead, (rows - first_row) * sizeof(T), kSide);
  for (uint64_t c = first_column; c < whole_columns; c += kSide) {
    if (asks == Asks::kNext) {
      for (uint64_t k = 0; k < kSide; ++k)
        AskForAll(sides.From(first_row, c + far_ahead + k), rows - first_row);
    }
    const uint64_t next = std::min(c + ahead, columns);
    uint64_t left = asks == Asks::kThese ? std::min(kSide, columns - next) : 0;
    const T* column = sides.From(first_row, next);
    for (uint64_t r = first_row; r < whole_rows; r += kSide) {
      if (left > 0) {
        AskForFirst(column, rows - first_row);
        column += sides.from_stride;
        --left;
      }
      Squares::Square(sides.From(r, c), sides.from_stride, sides.To(r, c), sides.to_stride);
    }
  }
  for (uint64_t c = first_column; c < columns; ++c) {
    for (uint64_t r = c < whole_columns ? whole_rows : first_row; r < rows; ++r) {
      std::memcpy(sides.To(r, c), sides.From(r, c), sizeof(T));  // neither need be aligned
    }
  }
}

#if ANYDML_TURNS_LINES
// Several lines of the target, one below the other, each from several squares.
template <class Squares, bool kAsks, typename T = typename Squares::Element>
HWY_INLINE void StreamSquares(const Sides<T>& sides, uint64_t r, uint64_t c, int64_t ahead) {
  constexpr uint64_t kSide = Squares::kSide, kLineElements = kLineBytes / sizeof(T);
  if constexpr (kSide == kLineElements) {
    Squares::template Square<true, kAsks>(sides.From(r, c), sides.from_stride, sides.To(r, c),
                                          sides.to_stride, ahead);
  } else {
    alignas(kLineBytes) T lines[kSide * kLineElements];
    for (uint64_t i = 0; i < kLineElements; i += kSide) {
      Squares::template Square<false, kAsks>(sides.From(r, c + i), sides.from_stride, lines + i,
                                             kLineElements, ahead);
    }
    for (uint64_t row = 0; row < kSide; ++row) {
      for (uint64_t i = 0; i < kLineElements; i += kSide) {
        const auto* const words = reinterpret_cast<const uint32_t*>(lines + row * kLineElements + i);
        Put<true>(hn::Load(DWords(), words), sides.To(r + row, c + i));
      }
    }
  }
}

// Long columns are not prefetched: hardware does it for most of their length, and prefetch instructions do
// not hinder it. Of short columns it covers little, so the next ones are prefetched.
constexpr uint64_t kShortColumn = 1024;

// Writes `kLines` adjacent lines of the target at a time, along the columns as far as rows go. Returns the
// number of columns done.
template <class Squares, uint64_t kLines, TransposeTo kTo, bool kAsks, typename T = typename Squares::Element>
uint64_t TransposeLines(const Sides<T>& sides, uint64_t rows, uint64_t first_column, uint64_t columns) {
  constexpr uint64_t kSide = Squares::kSide;
  constexpr uint64_t kStep = kTo == TransposeTo::kStream ? kLineBytes / sizeof(T) : kSide;
  constexpr uint64_t kWidth = kLines * kStep;
  const int64_t ahead = static_cast<int64_t>(kWidth) * sides.from_stride;
  uint64_t c = first_column;
  for (; c + kWidth <= columns; c += kWidth) {
    for (uint64_t r = 0; r + kSide <= rows; r += kSide) {
      for (uint64_t at = c; at < c + kWidth; at += kStep) {
        if constexpr (kTo == TransposeTo::kStream) {
          StreamSquares<Squares, kAsks>(sides, r, at, ahead);
        } else {
          Squares::template Square<false, kAsks>(sides.From(r, at), sides.from_stride, sides.To(r, at),
                                                 sides.to_stride, ahead);
        }
      }
    }
  }
  return c;
}

// With fewer columns there is no prefetch: the next tile continues with them.
constexpr uint64_t kManyColumns = 256;

// To a tile, from columns a power of two apart: they are first copied to where they do not conflict in L1,
// each for its whole length, which hardware prefetches. Returns the number of columns done.
template <class Near, typename T = typename Near::Element>
uint64_t TransposeCopies(const Sides<T>& sides, uint64_t rows, uint64_t columns) {
  constexpr uint64_t kSide = Near::kSide, kMostRows = 8 * kSide, kPitch = kMostRows + kLineBytes / sizeof(T);
  alignas(kLineBytes) T copies[kSide * kPitch];
  const uint64_t whole_rows = rows / kSide * kSide;
  uint64_t c = 0;
  for (; c + kSide <= columns; c += kSide) {
    for (uint64_t begin = 0; begin < whole_rows; begin += kMostRows) {
      const uint64_t end = std::min(begin + kMostRows, whole_rows);
      for (uint64_t k = 0; k < kSide; ++k) {
        const T* const from = sides.From(begin, c + k);
        for (uint64_t r = 0; r < end - begin; r += kSide) {
          Put<false>(hn::LoadU(DWords(), reinterpret_cast<const uint32_t*>(from + r)),
                     copies + k * kPitch + r);
        }
      }
      for (uint64_t r = begin; r < end; r += kSide) {
        Near::template Square<false, false>(copies + r - begin, kPitch, sides.To(r, c), sides.to_stride, 0);
      }
    }
  }
  return c;
}

// Two adjacent lines of memory take less than twice the time of one, and four even less per line.
template <class Squares, bool kAsks, typename T = typename Squares::Element>
uint64_t TransposeToTensor(const Sides<T>& sides, uint64_t rows, uint64_t columns, bool streams) {
  if (!streams) return TransposeLines<Squares, 1, TransposeTo::kTensor, kAsks>(sides, rows, 0, columns);
  uint64_t done = 0;
  if constexpr (sizeof(T) == 2) {
    done = TransposeLines<Squares, 4, TransposeTo::kStream, kAsks>(sides, rows, done, columns);
  }
  done = TransposeLines<Squares, 2, TransposeTo::kStream, kAsks>(sides, rows, done, columns);
  return TransposeLines<Squares, 1, TransposeTo::kStream, kAsks>(sides, rows, done, columns);
}

template <class Near, class Squares, class NarrowSquares, typename T = typename Squares::Element>
void Transpose(const Sides<T>& sides, uint64_t rows, uint64_t columns, TransposeTo where) {
  // Whether the lines of as many columns as a square has fit into L1 without conflicts.
  const bool near = sides.from_stride * int64_t{sizeof(T)} % 2048 != 0;
  const bool asks = rows * sizeof(T) <= kShortColumn, streams = where == TransposeTo::kStream;
  uint64_t done = 0;
  if (where == TransposeTo::kTile || where == TransposeTo::kTiles) {
    if (near) {
      done = TransposeLines<Near, 1, TransposeTo::kTile, false>(sides, rows, 0, columns);
    } else if (!std::is_same_v<Near, Squares> && columns >= kManyColumns) {
      done = TransposeCopies<Near>(sides, rows, columns);
    } else {
      done = TransposeLines<Squares, 1, TransposeTo::kTile, false>(sides, rows, 0, columns);
    }
  } else if (near && asks) {
    done = TransposeToTensor<Near, true>(sides, rows, columns, streams);
  } else if (near) {
    done = TransposeToTensor<Near, false>(sides, rows, columns, streams);
  } else {
    done = TransposeToTensor<Squares, false>(sides, rows, columns, streams);
  }
  TransposeColumns<NarrowSquares>(sides, 0, rows, done, columns, Asks::kNone);
  TransposeColumns<NarrowSquares>(sides, rows / Squares::kSide * Squares::kSide, rows, 0, done, Asks::kNone);
}
#else
template <class Near, class Squares, class NarrowSquares, typename T = typename NarrowSquares::Element>
void Transpose(const Sides<T>& sides, uint64_t rows, uint64_t columns, TransposeTo where) {
  // Columns of two lines are prefetched anyway, as the first two lines.
  const bool next = where == TransposeTo::kTiles && rows * sizeof(T) > 2 * kLineBytes;
  TransposeColumns<NarrowSquares>(sides, 0, rows, 0, columns, next ? Asks::kNext : Asks::kThese);
}
#endif

}  // namespace

void TransposeWords(const uint32_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint32_t* to,
                    int64_t to_stride, TransposeTo where) {
  Transpose<NearWords, WideWords, Words>({from, from_stride, to, to_stride}, rows, columns, where);
}

void TransposeHalfWords(const uint16_t* from, int64_t from_stride, uint64_t rows, uint64_t columns,
                        uint16_t* to, int64_t to_stride, TransposeTo where) {
  Transpose<NearHalfWords, WideHalfWords, HalfWords>({from, from_stride, to, to_stride}, rows, columns,
                                                     where);
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
namespace {
ANYDML_EXPORT_BEST(TransposeWords);
ANYDML_EXPORT_BEST(TransposeHalfWords);
}  // namespace

void TransposeBlock(const uint32_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint32_t* to,
                    int64_t to_stride, TransposeTo where) {
  ANYDML_BEST(TransposeWords)(from, from_stride, rows, columns, to, to_stride, where);
}

void TransposeBlock(const uint16_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint16_t* to,
                    int64_t to_stride, TransposeTo where) {
  ANYDML_BEST(TransposeHalfWords)(from, from_stride, rows, columns, to, to_stride, where);
}

}  // namespace anydml
#endif
