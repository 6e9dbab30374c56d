// Copies of nests of loops. Longer than most files: the choice of a way and the loops of every way share the
// same few templates, which the compiler inlines into each other.
#include "ops/common/nest_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "ops/common/parallel.h"
#include "ops/common/stream_copy.h"
#include "ops/common/transpose_block.h"
#include "ops/common/transpose_tile.h"

namespace anydml {
namespace {

constexpr uint64_t kLine = 64, kPage = 4096;
// The bytes of a long run that a thread takes at a time; the shortest run that is streamed without leaving
// too many partial lines; the size of the beginning of a repeated row, which is copied again and again from
// the L1 cache.
constexpr uint64_t kItemBytes = uint64_t{64} << 10, kStreamRun = 2 << 10, kPeriodBytes = 4 << 10;
// Elements of a square whose rows and columns are in as many pages as the TLB covers.
constexpr uint64_t kBlockEdge = 512;

// Rows of a block whose lines are streamed as they are transposed: long enough in the source for hardware
// prefetch, in no more pages of the target than the TLB covers.
constexpr uint64_t kTurnedRows = 1024;

// Whether streaming saves more than it costs for the rows of a tile.
#if defined(__x86_64__)
constexpr bool kStreamsTiles = true;
#else
constexpr bool kStreamsTiles = false;
#endif

struct Wide {  // 16 bytes
  uint64_t words[2];
};

// Tiles of 16 or 32 KiB, whose rows are at least two cache lines on both sides.
template <typename T>
constexpr uint64_t kTileRows = sizeof(T) == 16  ? 32
                               : sizeof(T) == 8 ? 64
                                                : 128;
template <typename T>
constexpr uint64_t kTileColumns = sizeof(T) <= 2   ? 128
                                  : sizeof(T) >= 8 ? 32
                                                   : 64;

struct TileShape {
  uint64_t rows;
  uint64_t columns;
};
// Tiles of as many elements, longer if a block of this many rows and columns is too short.
template <typename T>
TileShape TileOf(uint64_t rows, uint64_t columns) {
  TileShape tile = {kTileRows<T>, kTileColumns<T>};
  for (; tile.rows / 2 >= rows && tile.rows > 1; tile.columns *= 2) tile.rows /= 2;
  for (; tile.columns / 2 >= columns && tile.columns > 1; tile.rows *= 2) tile.columns /= 2;
  return tile;
}

int64_t Signed(uint64_t stride) { return static_cast<int64_t>(stride); }
uint64_t Magnitude(uint64_t stride) { return Signed(stride) < 0 ? 0 - stride : stride; }

// Buffers are aligned to their elements, not to the wider ones made of several.
template <typename T>
T Get(const T* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T>
void Set(T* to, const T& value) {
  std::memcpy(to, &value, sizeof(T));
}

// an unaligned vector of 16 bytes
struct __attribute__((packed, may_alias)) Vector {
  Lanes<uint64_t>::Vector lanes;
};

// Runs that a loop without calls copies faster than memcpy: a processor that sees only whole lines written
// one after the other does not read them first.
constexpr bool IsShortRun(uint64_t bytes) { return bytes >= kLine && bytes <= 8 << 10; }

inline __attribute__((always_inline)) void CopyShortRun(std::byte* __restrict to,
                                                        const std::byte* __restrict from, uint64_t bytes) {
  const auto* source = reinterpret_cast<const Vector*>(from);
  auto* target = reinterpret_cast<Vector*>(to);
  for (const auto* const lines = source + bytes / kLine * 4; source < lines; source += 4, target += 4) {
    const auto a = source[0].lanes, b = source[1].lanes, c = source[2].lanes, d = source[3].lanes;
    target[0].lanes = a;
    target[1].lanes = b;
    target[2].lanes = c;
    target[3].lanes = d;
  }
  for (uint64_t left = bytes % kLine / sizeof(Vector); left > 0; --left)
    (target++)->lanes = (source++)->lanes;
  if (bytes % sizeof(Vector) == 0) return;
  // The last vector overlaps the one before.
  reinterpret_cast<Vector*>(to + bytes - sizeof(Vector))->lanes =
      reinterpret_cast<const Vector*>(from + bytes - sizeof(Vector))->lanes;
}

// Copies several runs, `from_step` and `to_step` bytes apart.
__attribute__((noinline)) void CopyShortRuns(const std::byte* __restrict from, int64_t from_step,
                                             std::byte* __restrict to, int64_t to_step, uint64_t bytes,
                                             uint64_t count) {
  for (uint64_t i = 0; i < count; ++i, from += from_step, to += to_step) CopyShortRun(to, from, bytes);
}

inline void CopyBytes(std::byte* __restrict to, const std::byte* __restrict from, uint64_t bytes) {
  if (IsShortRun(bytes)) return CopyShortRun(to, from, bytes);
  std::memcpy(to, from, bytes);
}

void CopyRuns(const std::byte* __restrict from, int64_t from_step, std::byte* __restrict to, int64_t to_step,
              uint64_t bytes, uint64_t count) {
  if (IsShortRun(bytes)) return CopyShortRuns(from, from_step, to, to_step, bytes, count);
  for (; count > 0; --count, from += from_step, to += to_step) std::memcpy(to, from, bytes);
}

template <typename T>
void CopyElements(const T* from, T* to, uint64_t count) {
  CopyBytes(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), count * sizeof(T));
}

template <typename T, int64_t kStride>
void CopyEvery(const T* __restrict from, T* __restrict to, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) Set(to + i, Get(from + static_cast<int64_t>(i) * kStride));
}

// Streams every second element.
template <typename T>
void StreamEverySecond(const T* __restrict from, T* __restrict to, uint64_t count) {
  uint64_t i = 0;
#if defined(__x86_64__)
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    constexpr uint64_t kElements = sizeof(__m128i) / sizeof(T), kLineElements = kLine / sizeof(T);
    const auto load = [](const T* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
    for (; i < count && reinterpret_cast<uintptr_t>(to + i) % kLine != 0; ++i) Set(to + i, Get(from + 2 * i));
    // The last element of a run has no neighbour.
    for (; i + kLineElements < count; i += kLineElements) {
      // Prefetches two lines about a page ahead: reading is the bottleneck, and hardware prefetchers stop at
      // the end of a page.
      __builtin_prefetch(reinterpret_cast<const std::byte*>(from + 2 * i) + kPage);
      __builtin_prefetch(reinterpret_cast<const std::byte*>(from + 2 * i) + kPage + kLine);
      for (uint64_t k = i; k < i + kLineElements; k += kElements) {
        const __m128i a = load(from + 2 * k), b = load(from + 2 * k + kElements);
        const __m128i both =
            sizeof(T) == 8 ? _mm_unpacklo_epi64(a, b)
                           : _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88));
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), both);
      }
    }
  }
#endif
  CopyEvery<T, 2>(from + 2 * i, to + i, count - i);
}

template <typename T>
void CopyRun(const T* __restrict from, int64_t from_stride, T* __restrict to, int64_t to_stride,
             uint64_t count, bool streams) {
  if (to_stride == 1) {
    switch (from_stride) {
      case 1:
        if (!streams) {
          CopyElements(from, to, count);
        } else {
          StreamCopy(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                     count * sizeof(T));
        }
        return;
      case 0: {
        const T value = Get(from);
        for (uint64_t i = 0; i < count; ++i) Set(to + i, value);
        return;
      }
      case -1:
        return CopyEvery<T, -1>(from, to, count);
      case 2:
        return streams ? StreamEverySecond(from, to, count) : CopyEvery<T, 2>(from, to, count);
      case 3:
        return CopyEvery<T, 3>(from, to, count);
      case 4:
        return CopyEvery<T, 4>(from, to, count);
      default:
        break;
    }
  }
  for (uint64_t i = 0; i < count; ++i) {
    Set(to + static_cast<int64_t>(i) * to_stride, Get(from + static_cast<int64_t>(i) * from_stride));
  }
}

template <typename T, size_t kColumns>
void Interleave(const T* __restrict from, int64_t from_stride, T* __restrict to, uint64_t rows) {
  for (uint64_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < kColumns; ++c) {
      Set(to + r * kColumns + c, Get(from + static_cast<int64_t>(c) * from_stride + r));
    }
  }
}

template <typename T, size_t kRows>
void Deinterleave(const T* __restrict from, T* __restrict to, int64_t to_stride, uint64_t columns) {
  for (uint64_t c = 0; c < columns; ++c) {
    for (size_t r = 0; r < kRows; ++r) {
      Set(to + static_cast<int64_t>(r) * to_stride + c, Get(from + c * kRows + r));
    }
  }
}

// Columns of a tile that are transposed between prefetches of the next tile's.
constexpr uint64_t kColumnsAtOnce = 16;

// A tile is assembled in the L1 cache: lines of either side may conflict there, since distances between rows
// are often powers of two. Meanwhile the next tile, at `next`, is prefetched: its rows are too short for
// hardware prefetch.
template <typename T>
__attribute__((noinline)) void CopyTile(const T* from, const LoopNest<2>::Loop& rows,
                                        const LoopNest<2>::Loop& columns, T* to, const TileShape& shape,
                                        uint64_t row_count, uint64_t column_count, bool streams,
                                        const T* next) {
  const uint64_t pitch = shape.columns;
  const int64_t from_row = Signed(rows.strides[0]), from_column = Signed(columns.strides[0]);
  const int64_t to_row = Signed(rows.strides[1]), to_column = Signed(columns.strides[1]);
  alignas(kLine) T tile[kTileRows<T> * kTileColumns<T>];
  if constexpr (sizeof(T) < 16) {
    if (from_row == 1 && to_column == 1) {
      for (uint64_t c = 0; c < column_count; c += kColumnsAtOnce) {
        const uint64_t count = std::min(kColumnsAtOnce, column_count - c);
        const int64_t offset = static_cast<int64_t>(c) * from_column;
        for (uint64_t i = 0; next != nullptr && i < count; ++i) {
          const auto* const column =
              reinterpret_cast<const std::byte*>(next + offset + static_cast<int64_t>(i) * from_column);
          for (uint64_t at = 0; at < shape.rows * sizeof(T); at += kLine)
            __builtin_prefetch(column + at, 0, 2);
        }
        TransposeTile(from + offset, from_column, tile + c, static_cast<ptrdiff_t>(pitch),
                      static_cast<ptrdiff_t>(row_count), static_cast<ptrdiff_t>(count));
      }
      const uint64_t bytes = column_count * sizeof(T);
      const auto* const source = reinterpret_cast<const std::byte*>(tile);
      auto* const target = reinterpret_cast<std::byte*>(to);
      const auto source_step = static_cast<int64_t>(pitch * sizeof(T));
      const int64_t target_step = to_row * int64_t{sizeof(T)};
      if (streams && bytes % kLine == 0) {
        StreamRuns(target, target_step, source, source_step, bytes, row_count);
      } else {
        CopyRuns(source, source_step, target, target_step, bytes, row_count);
      }
      return;
    }
  }
  for (uint64_t c = 0; c < column_count; ++c) {
    CopyRun(from + static_cast<int64_t>(c) * from_column, from_row, tile + c, static_cast<int64_t>(pitch),
            row_count, false);
  }
  for (uint64_t r = 0; r < row_count; ++r) {
    CopyRun(tile + r * pitch, 1, to + static_cast<int64_t>(r) * to_row, to_column, column_count, false);
  }
}

// Iterates over a nest.
class Cursor {
 public:
  Cursor(const LoopNest<2>& nest, uint64_t number) : nest_(nest) {
    offsets_ = OffsetsOf(nest, number);
    for (uint32_t d = nest.rank; d-- > 0;) {
      counters_[d] = number % nest.loops[d].size;
      number /= nest.loops[d].size;
    }
  }

  int64_t from() const { return Signed(offsets_[NestCopy::kFrom]); }
  int64_t to() const { return Signed(offsets_[NestCopy::kTo]); }

  // The remaining iterations of the innermost loop, and their strides.
  uint64_t Left() const {
    return nest_.rank == 0 ? 1 : nest_.loops[nest_.rank - 1].size - counters_[nest_.rank - 1];
  }
  int64_t Step(size_t operand) const {
    return nest_.rank == 0 ? 0 : Signed(nest_.loops[nest_.rank - 1].strides[operand]);
  }

  // Advances by `count` iterations, at most Left().
  void Advance(uint64_t count) {
    for (uint32_t d = nest_.rank; d-- > 0; count = 1) {
      const auto& loop = nest_.loops[d];
      for (size_t o = 0; o < 2; ++o) offsets_[o] += count * loop.strides[o];
      counters_[d] += count;
      if (counters_[d] < loop.size) return;
      for (size_t o = 0; o < 2; ++o) offsets_[o] -= loop.size * loop.strides[o];
      counters_[d] = 0;
    }
  }

 private:
  const LoopNest<2>& nest_;
  LoopNest<2>::Offsets offsets_;
  std::array<uint64_t, kMaxDimensions> counters_{};
};

template <typename F>
void DispatchByBytes(uint32_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Wide>();
  }
}

}  // namespace

NestCopy::NestCopy(const LoopNest<2>& nest, uint32_t element_bytes, bool streams)
    : bytes_(Iterations(nest) * element_bytes), width_(element_bytes), streams_(streams) {
  outer_ = nest;
  Widen(&outer_);
  columns_ = TakeInnermost(&outer_);
  Choose();
  OrderBySource();
}

// A few elements that stay contiguous are treated as one.
void NestCopy::Widen(LoopNest<2>* nest) {
  if (nest->rank == 0) return;
  const Loop& inner = nest->loops[nest->rank - 1];
  const uint64_t bytes = inner.size * width_;
  if (inner.strides != LoopNest<2>::Offsets{1, 1} || bytes > sizeof(Wide) || !std::has_single_bit(bytes))
    return;
  for (uint32_t d = 0; d + 1 < nest->rank; ++d) {
    for (const uint64_t stride : nest->loops[d].strides) {
      if (stride % inner.size != 0) return;  // a power of two, so the sign does not matter
    }
  }
  const auto size = static_cast<int64_t>(inner.size);
  LoopNest<2> wide;
  for (uint32_t d = 0; d + 1 < nest->rank; ++d) {
    LoopNest<2>::Offsets strides = nest->loops[d].strides;
    for (uint64_t& stride : strides) stride = static_cast<uint64_t>(Signed(stride) / size);
    wide.Append(nest->loops[d].size, strides);
  }
  *nest = wide;
  width_ = static_cast<uint32_t>(bytes);
}

// Sequential reads are prefetched by hardware, and nothing waits for writes: as long as whole lines are
// written, loops follow the source.
void NestCopy::OrderBySource() {
  const uint64_t bytes = std::min(item_rows_, rows_.size) * std::min(item_columns_, columns_.size) * width_;
  if (bytes < kLine || way_ == Way::kInterleave) return;
  std::stable_sort(
      outer_.loops.begin(), outer_.loops.begin() + outer_.rank,
      [](const Loop& a, const Loop& b) { return Magnitude(a.strides[kFrom]) > Magnitude(b.strides[kFrom]); });
}

void NestCopy::Choose() {
  const uint64_t stride = columns_.strides[kFrom];
  uint32_t across = outer_.rank;
  for (uint32_t d = 0; d < outer_.rank; ++d) {
    const uint64_t other = Magnitude(outer_.loops[d].strides[kFrom]);
    if (other == 0 || other >= Magnitude(stride)) continue;
    if (across == outer_.rank || other < Magnitude(outer_.loops[across].strides[kFrom])) across = d;
  }
  if (across < outer_.rank) return ChooseSquares(across);
  const uint64_t run_bytes = columns_.size * width_;
  if (outer_.rank > 0 && columns_.strides == LoopNest<2>::Offsets{1, 1} && run_bytes <= kPeriodBytes / 4) {
    const Loop& repeat = outer_.loops[outer_.rank - 1];
    if (repeat.strides == LoopNest<2>::Offsets{0, columns_.size}) {
      way_ = Way::kPeriods;
      rows_ = TakeInnermost(&outer_);
      item_columns_ = columns_.size;
      item_rows_ = std::max<uint64_t>(1, kItemBytes / run_bytes);
      row_items_ = (rows_.size + item_rows_ - 1) / item_rows_;
      streams_ = false;
      return;
    }
  }
  whole_lines_ = kStreamsTiles && columns_.strides == LoopNest<2>::Offsets{1, 1} && run_bytes % kLine == 0 &&
                 std::all_of(outer_.loops.begin(), outer_.loops.begin() + outer_.rank,
                             [&](const Loop& loop) { return loop.strides[kTo] * width_ % kLine == 0; });
  streams_ = streams_ && (run_bytes >= kStreamRun || whole_lines_);
  item_columns_ = std::max<uint64_t>(1, kItemBytes / width_);
  column_items_ = (columns_.size + item_columns_ - 1) / item_columns_;
}

void NestCopy::ChooseSquares(uint32_t across) {
  rows_ = outer_.loops[across];
  std::copy(outer_.loops.begin() + across + 1, outer_.loops.begin() + outer_.rank,
            outer_.loops.begin() + across);
  --outer_.rank;
  const auto is_few = [](uint64_t size) { return size >= 2 && size <= 4; };
  const bool neighbours = rows_.strides[kFrom] == 1 && columns_.strides[kTo] == 1;
  if (neighbours && is_few(columns_.size) && rows_.strides[kTo] == columns_.size) {
    way_ = Way::kInterleave;
    item_columns_ = columns_.size;
    item_rows_ = kItemBytes / width_;
    streams_ = false;
  } else if (neighbours && is_few(rows_.size) && columns_.strides[kFrom] == rows_.size) {
    way_ = Way::kDeinterleave;
    item_rows_ = rows_.size;
    item_columns_ = kItemBytes / width_;
    streams_ = false;
  } else {
    way_ = Way::kSquares;
    streams_ = kStreamsTiles && streams_ && columns_.size * width_ >= kLine;
    // Whether lines that stay in the caches do not conflict there.
    const bool has_room = streams_ || rows_.strides[kTo] * width_ % kPage != 0;
    turns_lines_ = kStreamsTiles && has_room && neighbours && (width_ == 2 || width_ == 4);
    // Shrinks the items until there are enough for all threads.
    uint64_t edge = 2 * kBlockEdge;
    do {
      edge /= 2;
      item_rows_ = turns_lines_ ? kTurnedRows : edge;
      row_items_ = (rows_.size + item_rows_ - 1) / item_rows_;
      column_items_ = (columns_.size + edge - 1) / edge;
    } while (edge > 128 && row_items_ * column_items_ * Iterations(outer_) < 64);
    item_columns_ = edge;
  }
  row_items_ = (rows_.size + item_rows_ - 1) / item_rows_;
  column_items_ = (columns_.size + item_columns_ - 1) / item_columns_;
}

// Whether elements are contiguous on one side at most, so that each may be in a cache line, and a page, of
// its own.
bool NestCopy::GoesByElements() const {
  if (way_ == Way::kRuns) return columns_.strides[kFrom] > 1 || columns_.strides[kTo] != 1;
  return way_ == Way::kSquares && (rows_.strides[kFrom] != 1 || columns_.strides[kTo] != 1);
}

// Based on the slowest cases.
uint64_t NestCopy::work_bytes() const {
  constexpr uint64_t kByte = 4, kElement = 512, kItem = 512;
  const uint64_t items = Iterations(outer_) * row_items_ * column_items_;
  return kByte * bytes_ + kItem * items + (GoesByElements() ? kElement * (bytes_ / width_) : 0);
}

template <typename T>
void NestCopy::CopyBlock(const T* from, T* to, uint64_t rows, uint64_t columns, uint64_t rows_ahead) const {
  const int64_t from_row = Signed(rows_.strides[kFrom]), from_column = Signed(columns_.strides[kFrom]);
  const int64_t to_row = Signed(rows_.strides[kTo]), to_column = Signed(columns_.strides[kTo]);
  const bool streams =
      streams_ && (reinterpret_cast<uintptr_t>(to) | rows_.strides[kTo] * sizeof(T)) % kLine == 0;
  switch (way_) {
    case Way::kRuns:
      return CopyRun(from, from_column, to, to_column, columns, streams_);
    case Way::kPeriods: {
      CopyElements(from, to, columns);
      const uint64_t total = rows * columns, most = kPeriodBytes / (columns * sizeof(T)) * columns;
      for (uint64_t done = columns; done < total;) {
        const uint64_t more = std::min({done, total - done, most});
        CopyElements(to, to + done, more);
        done += more;
      }
      return;
    }
    case Way::kInterleave:
      return columns == 2   ? Interleave<T, 2>(from, from_column, to, rows)
             : columns == 3 ? Interleave<T, 3>(from, from_column, to, rows)
                            : Interleave<T, 4>(from, from_column, to, rows);
    case Way::kDeinterleave:
      return rows == 2   ? Deinterleave<T, 2>(from, to, to_row, columns)
             : rows == 3 ? Deinterleave<T, 3>(from, to, to_row, columns)
                         : Deinterleave<T, 4>(from, to, to_row, columns);
    case Way::kSquares: {
      if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
        if (turns_lines_) {
          const TransposeTo where = streams ? TransposeTo::kStream : TransposeTo::kTensor;
          return TransposeBlock(from, from_column, rows, columns, to, to_row, where);
        }
      }
      const TileShape shape = TileOf<T>(rows_.size, columns_.size);
      for (uint64_t c = 0; c < columns; c += shape.columns) {
        for (uint64_t r = 0; r < rows; r += shape.rows) {
          const auto row = static_cast<int64_t>(r), column = static_cast<int64_t>(c);
          const T* const tile = from + row * from_row + column * from_column;
          // Only whole tiles are prefetched.
          const bool has_next = r + 2 * shape.rows <= rows_ahead && c + shape.columns <= columns;
          CopyTile(tile, rows_, columns_, to + row * to_row + column * to_column, shape,
                   std::min(rows - r, shape.rows), std::min(columns - c, shape.columns), streams,
                   has_next ? tile + shape.rows : nullptr);
        }
      }
    }
  }
}

template <typename T>
void NestCopy::RunItems(const T* from, T* to, uint64_t begin, uint64_t end) const {
  const uint64_t per_iteration = row_items_ * column_items_;
  Cursor at(outer_, begin / per_iteration);
  if (per_iteration == 1) {
    const bool lines = streams_ && whole_lines_ && reinterpret_cast<uintptr_t>(to) % kLine == 0;
    // Streaming short runs that begin within lines would write most lines partially.
    const bool within_lines = streams_ && !lines && columns_.size * sizeof(T) < kStreamRun;
    const bool short_runs = way_ == Way::kRuns && columns_.strides == LoopNest<2>::Offsets{1, 1} &&
                            (!streams_ || lines || within_lines) && IsShortRun(columns_.size * sizeof(T));
    for (uint64_t count; begin < end; begin += count) {
      count = std::min(at.Left(), end - begin);
      const T* source = from + at.from();
      T* target = to + at.to();
      if (short_runs && lines) {
        StreamRuns(reinterpret_cast<std::byte*>(target), at.Step(kTo) * int64_t{sizeof(T)},
                   reinterpret_cast<const std::byte*>(source), at.Step(kFrom) * int64_t{sizeof(T)},
                   columns_.size * sizeof(T), count);
      } else if (short_runs) {
        CopyShortRuns(reinterpret_cast<const std::byte*>(source), at.Step(kFrom) * int64_t{sizeof(T)},
                      reinterpret_cast<std::byte*>(target), at.Step(kTo) * int64_t{sizeof(T)},
                      columns_.size * sizeof(T), count);
      }
      for (uint64_t i = 0; i < count && !short_runs; ++i) {
        CopyBlock(source, target, rows_.size, columns_.size, rows_.size);
        source += at.Step(kFrom);
        target += at.Step(kTo);
      }
      at.Advance(count);
    }
  }
  for (uint64_t item = begin; item < end; ++item) {
    const uint64_t row = item % per_iteration / column_items_ * item_rows_;
    const uint64_t column = item % column_items_ * item_columns_;
    const uint64_t from_offset = row * rows_.strides[kFrom] + column * columns_.strides[kFrom];
    const uint64_t to_offset = row * rows_.strides[kTo] + column * columns_.strides[kTo];
    const uint64_t rows = std::min(item_rows_, rows_.size - row);
    CopyBlock(from + at.from() + Signed(from_offset), to + at.to() + Signed(to_offset), rows,
              std::min(item_columns_, columns_.size - column), column_items_ == 1 ? rows_.size - row : rows);
    if ((item + 1) % per_iteration == 0) at.Advance(1);
  }
  if (streams_) EndStream();
}

void NestCopy::Run(const std::byte* from, std::byte* to, uint32_t part, uint32_t parts) const {
  const uint64_t items = Iterations(outer_) * row_items_ * column_items_;
  const uint64_t begin = PartBegin(items, part, parts), end = PartBegin(items, part + 1, parts);
  if (begin == end) return;
  DispatchByBytes(width_, [&]<typename T>() {
    RunItems(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), begin, end);
  });
}

}  // namespace anydml
