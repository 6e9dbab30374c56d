#include "ops/move/cpu/columns.h"

#include <algorithm>
#include <cstring>

#include "kernel/kernel.h"
#include "ops/common/parallel.h"
#include "ops/common/transpose_tile.h"

namespace anydml {
namespace {

constexpr uint64_t kTile = 64;
constexpr size_t kFewColumns = 16;

bool SameLoops(const LoopNest<2>& a, const LoopNest<2>& b) {
  return a.rank == b.rank &&
         std::equal(a.loops.begin(), a.loops.begin() + a.rank, b.loops.begin(),
                    [](const auto& x, const auto& y) { return x.size == y.size && x.strides == y.strides; });
}

bool Splits(const PlacedMap& first) {
  return first.map.nest.loops[first.map.nest.rank - 1].strides[FlatMap::kTo] == 1;
}

// Whether `next` is the column `number` columns after `first`.
bool IsColumn(const PlacedMap& first, const PlacedMap& next, int64_t number) {
  if (next.source != MoveCopy::kInput || !SameLoops(first.map.nest, next.map.nest)) return false;
  if (Splits(first)) return next.from_buffer == first.from_buffer && next.map.from == first.map.from + number;
  return next.to_buffer == first.to_buffer && next.map.to == first.map.to + number;
}

}  // namespace

size_t ColumnCopies::Count(std::span<const PlacedMap> copies) {
  const PlacedMap& first = copies[0];
  if (first.source != MoveCopy::kInput || first.map.nest.rank == 0) return 0;
  const auto& inner = first.map.nest.loops[first.map.nest.rank - 1];
  const bool to_next = inner.strides[FlatMap::kTo] == 1, from_next = inner.strides[FlatMap::kFrom] == 1;
  if (to_next == from_next) return 0;
  size_t count = 1;
  while (count < copies.size() && IsColumn(first, copies[count], static_cast<int64_t>(count))) ++count;
  return count < kFewColumns ? 0 : count;
}

ColumnCopies::ColumnCopies(std::span<const PlacedMap> copies, uint32_t element_bytes)
    : element_bytes_(element_bytes), splits_(Splits(copies[0])), outer_(copies[0].map.nest) {
  rows_ = TakeInnermost(&outer_);
  row_items_ = (rows_.size + kTile - 1) / kTile;
}

template <typename T>
void ColumnCopies::RunItem(const KernelArguments& arguments, std::span<const PlacedMap> copies,
                           uint64_t item) const {
  const auto offsets = OffsetsOf(outer_, item / row_items_);
  const uint64_t first = item % row_items_ * kTile;
  const auto rows = static_cast<ptrdiff_t>(std::min(kTile, rows_.size - first));
  const auto offset = [&](size_t operand, int64_t begin) {
    return begin + static_cast<int64_t>(offsets[operand] + first * rows_.strides[operand]);
  };
  const auto source = [&](const PlacedMap& copy) {
    return reinterpret_cast<const T*>(arguments.inputs[copy.from_buffer].data) +
           offset(FlatMap::kFrom, copy.map.from);
  };
  const auto target = [&](const PlacedMap& copy) {
    return reinterpret_cast<T*>(arguments.outputs[copy.to_buffer].data) + offset(FlatMap::kTo, copy.map.to);
  };
  alignas(64) T tile[kTile * kTile];  // a column in each row
  for (size_t begin = 0; begin < copies.size(); begin += kTile) {
    const auto columns = copies.subspan(begin, std::min<size_t>(kTile, copies.size() - begin));
    const auto count = static_cast<ptrdiff_t>(columns.size());
    if (splits_) {
      TransposeTile(source(columns[0]), static_cast<ptrdiff_t>(rows_.strides[FlatMap::kFrom]), tile, kTile,
                    count, rows);
    }
    for (ptrdiff_t c = 0; c < count; ++c) {
      T* const column = tile + c * static_cast<ptrdiff_t>(kTile);
      const auto bytes = static_cast<size_t>(rows) * sizeof(T);
      if (splits_) {
        std::memcpy(target(columns[static_cast<size_t>(c)]), column, bytes);
      } else {
        std::memcpy(column, source(columns[static_cast<size_t>(c)]), bytes);
      }
    }
    if (!splits_) {
      TransposeTile(static_cast<const T*>(tile), static_cast<ptrdiff_t>(kTile), target(columns[0]),
                    static_cast<ptrdiff_t>(rows_.strides[FlatMap::kTo]), rows, count);
    }
  }
}

void ColumnCopies::Run(const KernelArguments& arguments, std::span<const PlacedMap> copies, uint32_t part,
                       uint32_t parts) const {
  const uint64_t items = Iterations(outer_) * row_items_;
  for (uint64_t i = PartBegin(items, part, parts); i < PartBegin(items, part + 1, parts); ++i) {
    switch (element_bytes_) {
      case 1:
        RunItem<uint8_t>(arguments, copies, i);
        break;
      case 2:
        RunItem<uint16_t>(arguments, copies, i);
        break;
      case 4:
        RunItem<uint32_t>(arguments, copies, i);
        break;
      default:
        RunItem<uint64_t>(arguments, copies, i);
    }
  }
}

}  // namespace anydml
