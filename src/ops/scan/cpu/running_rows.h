// Running totals of several rows at a time: additions within a row wait for each other, those of different
// rows do not.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/stream_copy.h"
#include "ops/numbers/load_store.h"
#include "ops/scan/cpu/columns.h"
#include "ops/scan/problem.h"

namespace anydml {

inline constexpr uint64_t kScanRows = 4;
// Rows at a time of tensors in memory: rows are often a power of two apart and evict each other from a cache
// of low associativity.
#if defined(__x86_64__)
inline constexpr uint64_t kEqualRows = kScanRows;
#else
inline constexpr uint64_t kEqualRows = 2;
#endif

// Rows of a tensor that are scanned together: `count` elements of each, from `offset` on.
struct ScanSpan {
  uint64_t rows = 1;
  uint64_t count = 0;
  LoopNest<2>::Offsets offset{};
  LoopNest<2>::Offsets row_strides{};
};

// Moves the elements of a problem to and from registers of type T.
template <typename T, bool kMultiplies>
class ScanMachine {
 public:
  explicit ScanMachine(const ScanProblem& problem)
      : exclusive_(problem.exclusive),
        reverse_(problem.reverse),
        converts_(!SameBytes(problem.output.type, ClassOf(problem.output.type))),
        streams_(StreamsResults(ElementCount(problem.output) * (BitSize(problem.output.type) / 8))),
        load_(FindLoad(problem.input.type, ClassOf(problem.input.type))),
        store_(FindStore(ClassOf(problem.output.type), problem.output.type)) {}

  bool reverse() const { return reverse_; }

  // To be called after a thread's last ScanColumns.
  void EndColumns() const {
    if (streams_) EndStream();
  }

  // Scans the rows of `span` along a loop with these strides. `totals`: a running total per row, read first
  // and updated.
  void ScanRows(const ScanSpan& span, const LoopNest<2>::Offsets& along, const std::byte* input,
                std::byte* output, T* totals) const {
    if (!converts_ && along == LoopNest<2>::Offsets{1, 1}) {
      const auto* from = reinterpret_cast<const T*>(input) + span.offset[ScanLoops::kInput];
      auto* to = reinterpret_cast<T*>(output) + span.offset[ScanLoops::kOutput];
      const auto [from_row, to_row] = span.row_strides;
      uint64_t r = 0;
      for (; r + kEqualRows <= span.rows; r += kEqualRows) {
        ScanEqual<kEqualRows>(from + r * from_row, from_row, to + r * to_row, to_row, span.count, totals + r);
      }
      for (; r < span.rows; ++r) {
        ScanEqual<1>(from + r * from_row, 0, to + r * to_row, 0, span.count, totals + r);
      }
      return;
    }
    T tile[kScanRows * kTileColumns];
    const uint64_t tiles = (span.count + kTileColumns - 1) / kTileColumns;
    for (uint64_t i = 0; i < tiles; ++i) {
      const uint64_t begin = (reverse_ ? tiles - 1 - i : i) * kTileColumns;
      const uint64_t columns = std::min(kTileColumns, span.count - begin);
      const auto block = [&](size_t o) {
        return Block{span.rows, columns, span.row_strides[o], along[o], span.offset[o] + begin * along[o]};
      };
      load_(input, block(ScanLoops::kInput), tile);
      ScanTile(tile, span.rows, columns, totals);
      store_(tile, block(ScanLoops::kOutput), output);
    }
  }

  // The total of one row, in an order that depends only on its length.
  T Total(const ScanSpan& span, const LoopNest<2>::Offsets& along, const std::byte* input) const {
    T lanes[kLanes];
    std::fill_n(lanes, kLanes, ScanNeutral<T, kMultiplies>());
    T tile[kTileColumns];
    for (uint64_t begin = 0; begin < span.count; begin += kTileColumns) {
      const uint64_t columns = std::min(kTileColumns, span.count - begin);
      const uint64_t offset = span.offset[ScanLoops::kInput] + begin * along[ScanLoops::kInput];
      const T* from = reinterpret_cast<const T*>(input) + offset;
      if (converts_ || along[ScanLoops::kInput] != 1) {
        load_(input, Block{1, columns, 0, along[ScanLoops::kInput], offset}, tile);
        from = tile;
      }
      uint64_t c = 0;
      for (; c + kLanes <= columns; c += kLanes) {
        for (uint64_t lane = 0; lane < kLanes; ++lane) {
          lanes[lane] = ScanCombine<T, kMultiplies>(lanes[lane], from[c + lane]);
        }
      }
      for (uint64_t lane = 0; c + lane < columns; ++lane) {
        lanes[lane] = ScanCombine<T, kMultiplies>(lanes[lane], from[c + lane]);
      }
    }
    for (uint64_t half = kLanes / 2; half > 0; half /= 2) {
      for (uint64_t lane = 0; lane < half; ++lane) {
        lanes[lane] = ScanCombine<T, kMultiplies>(lanes[lane], lanes[lane + half]);
      }
    }
    return lanes[0];
  }

  // One step of many contiguous sequences: `columns` of them, whose elements are `steps` apart.
  void ScanColumns(const LoopNest<2>::Offsets& offset, const LoopNest<2>::Offsets& steps, uint64_t columns,
                   const std::byte* input, std::byte* output, T* totals) const {
    if (!converts_ && steps == LoopNest<2>::Offsets{1, 1}) {
      const auto* from = reinterpret_cast<const T*>(input) + offset[ScanLoops::kInput];
      auto* to = reinterpret_cast<T*>(output) + offset[ScanLoops::kOutput];
      return Steps(from, to, columns, totals, streams_ && input != output);
    }
    T tile[kTileColumns];
    for (uint64_t begin = 0; begin < columns; begin += kTileColumns) {
      const uint64_t count = std::min(kTileColumns, columns - begin);
      const auto block = [&](size_t o) { return Block{1, count, 0, steps[o], offset[o] + begin * steps[o]}; };
      load_(input, block(ScanLoops::kInput), tile);
      Steps(tile, tile, count, totals + begin, false);
      store_(tile, block(ScanLoops::kOutput), output);
    }
  }

 private:
  static constexpr uint64_t kTileColumns = 256;
  static constexpr uint64_t kLanes = 16;

  static Class ClassOf(DataType type) {
    switch (type) {
      case DataType::kInt32:
        return Class::kI32;
      case DataType::kUInt32:
        return Class::kU32;
      case DataType::kInt64:
        return Class::kI64;
      case DataType::kUInt64:
        return Class::kU64;
      default:
        return Class::kF32;
    }
  }

  // NaNs are stored as canonical ones.
  static T Canonical(T x) {
    if constexpr (std::is_same_v<T, float>) {
      // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
      return x == x ? x : std::bit_cast<float>(0x7FC00000u);
    } else {
      return x;
    }
  }

#if defined(__x86_64__)
  void Steps(const T* from, T* to, uint64_t columns, T* totals, bool streams) const {
    RunScanStep({kMultiplies, exclusive_, streams}, from, to, columns, totals);
  }
#else
  // Compilers vectorise this on all machines, because they see that `totals` does not alias a tensor.
  template <bool kExclusive>
  static void Step(const T* from, T* to, uint64_t columns, T* totals) {
    for (uint64_t c = 0; c < columns; ++c) {
      const T before = totals[c], total = ScanCombine<T, kMultiplies>(before, from[c]);
      to[c] = Canonical(kExclusive ? before : total);
      totals[c] = total;
    }
  }

  void Steps(const T* from, T* to, uint64_t columns, T* totals, bool) const {
    exclusive_ ? Step<true>(from, to, columns, totals) : Step<false>(from, to, columns, totals);
  }
#endif

  // `from` and `to` may be the same: an element is read before it is written, and not afterwards.
  template <uint64_t kRows, bool kExclusive, bool kReverse>
  static void ScanSome(const T* from, uint64_t from_row, T* to, uint64_t to_row, uint64_t columns,
                       T* totals) {
    T running[kRows];
    std::copy_n(totals, kRows, running);
    for (uint64_t i = 0; i < columns; ++i) {
      const uint64_t c = kReverse ? columns - 1 - i : i;
      T x[kRows];
      for (uint64_t r = 0; r < kRows; ++r) x[r] = from[r * from_row + c];
      for (uint64_t r = 0; r < kRows; ++r) {
        const T total = ScanCombine<T, kMultiplies>(running[r], x[r]);
        to[r * to_row + c] = kExclusive ? running[r] : total;
        running[r] = total;
      }
    }
    std::copy_n(running, kRows, totals);
    for (uint64_t r = 0; r < kRows; ++r) {
      // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
      if (running[r] == running[r]) continue;  // a total that was NaN would still be: there was none
      for (uint64_t c = 0; c < columns; ++c) to[r * to_row + c] = Canonical(to[r * to_row + c]);
    }
  }

  template <uint64_t kRows>
  void ScanEqual(const T* from, uint64_t from_row, T* to, uint64_t to_row, uint64_t columns,
                 T* totals) const {
    if (exclusive_) {
      reverse_ ? ScanSome<kRows, true, true>(from, from_row, to, to_row, columns, totals)
               : ScanSome<kRows, true, false>(from, from_row, to, to_row, columns, totals);
    } else {
      reverse_ ? ScanSome<kRows, false, true>(from, from_row, to, to_row, columns, totals)
               : ScanSome<kRows, false, false>(from, from_row, to, to_row, columns, totals);
    }
  }

  // Consecutive rows of `columns` elements.
  void ScanTile(T* tile, uint64_t rows, uint64_t columns, T* totals) const {
    if (rows == kScanRows) {
      ScanEqual<kScanRows>(tile, columns, tile, columns, columns, totals);
      return;
    }
    for (uint64_t r = 0; r < rows; ++r) {
      ScanEqual<1>(tile + r * columns, 0, tile + r * columns, 0, columns, totals + r);
    }
  }

  bool exclusive_;
  bool reverse_;
  bool converts_;
  bool streams_;  // columns are stored non-temporally
  LoadBlock load_;
  StoreBlock store_;
};

// Calls f.template operator()<T, kMultiplies>() for the type of a problem's totals.
template <typename F>
auto DispatchScan(const ScanProblem& problem, F&& f) {
  const auto by_function = [&]<typename T>() {
    return problem.multiplies ? f.template operator()<T, true>() : f.template operator()<T, false>();
  };
  const DataType type = problem.output.type;
  if (BitSize(type) == 64) return by_function.template operator()<uint64_t>();
  if (type == DataType::kFloat32 || type == DataType::kFloat16)
    return by_function.template operator()<float>();
  return by_function.template operator()<uint32_t>();
}

}  // namespace anydml
