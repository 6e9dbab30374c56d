// Rows by the methods of row_select.h: packed ones in place; others in blocks of adjacent columns, or from a
// tile of them that is copied first. Threads share the rows, or a long row.
#include <algorithm>
#include <atomic>

#include "base/status.h"
#include "base/dispatch.h"
#include "ops/common/loop_nest.h"
#include "ops/common/parallel.h"
#include "ops/top_k/cpu/column_select.h"
#include "ops/top_k/problem.h"
#include "ops/top_k/cpu/row_select.h"
#include "ops/top_k/sequences.h"
#include "ops/top_k/cpu/split_row.h"
#include "ops/top_k/cpu/tile.h"

namespace anydml {
namespace {

// One thread does less work sooner than several.
constexpr uint64_t kSharedElements = 32768;
// The minimum that a thread takes at a time.
constexpr uint64_t kElementsPerTurn = 16384;
// A row is split if the parts are at least this long.
constexpr uint32_t kPartElements = 32768;

template <typename T>
class TopKRows final : public Kernel {
 public:
  TopKRows(const TopKProblem& problem, RowMethod method, uint32_t threads)
      : query_{problem.n(), problem.k(), problem.largest, method},
        wide_index_(problem.index.type == DataType::kUInt64) {
    outer_ = SequencesOf(problem, &axis_);
    if (axis_[kInput] != 1 && query_.n > 1) {
      tiled_ = true;
      neighbours_ = TakeInnermost(&outer_);
      columns_ = method == RowMethod::kMaxima && neighbours_.strides[kInput] == 1;
      tile_rows_ = TileRows(query_.n, sizeof(T), neighbours_.size);
    }
    tiles_ = (neighbours_.size + tile_rows_ - 1) / tile_rows_;
    items_ = tiles_ * Iterations(outer_);
    PlanThreads(threads);
  }

  uint64_t temporary_bytes() const override { return workers_ * WorkerBytes(); }

  Status Run(const KernelArguments& arguments) const override {
    const Operands operands = {reinterpret_cast<const Bits*>(arguments.inputs[0].data),
                               reinterpret_cast<Bits*>(arguments.outputs[0].data), arguments.outputs[1].data};
    if (parts_ > 1) {
      for (uint64_t item = 0; item < items_; ++item) {
        RunSplit(operands, item, arguments.executor, arguments.temporary.data);
      }
      return {};
    }
    std::atomic<uint64_t> next = 0;
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      std::byte* const scratch = arguments.temporary.data + worker * WorkerBytes();
      while (true) {
        const uint64_t begin = next.fetch_add(turn_, std::memory_order_relaxed);
        if (begin >= items_) return;
        const uint64_t end = std::min(begin + turn_, items_);
        for (uint64_t item = begin; item < end; ++item) RunItem(operands, item, scratch);
      }
    });
    return {};
  }

 private:
  using Bits = UnsignedOf<sizeof(T)>;
  using Offsets = LoopNest<3>::Offsets;

  struct Operands {
    const Bits* input;
    Bits* value;
    std::byte* index;
  };

  void PlanThreads(uint32_t threads) {
    const uint64_t rows = neighbours_.size * Iterations(outer_);
    if (threads <= 1 || rows * query_.n < kSharedElements) return;
    if (!tiled_ && query_.method == RowMethod::kSample && rows % threads != 0 && rows < 4 * threads) {
      parts_ = std::min({threads, query_.n / kPartElements, SplitRow<T>::kMaxParts});
      if (parts_ > 1) return;
      parts_ = 1;
    }
    const uint64_t elements = std::min(tile_rows_, neighbours_.size) * query_.n;
    turn_ = std::max<uint64_t>(1, std::min(kElementsPerTurn / elements, items_ / (4 * threads)));
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(threads, (items_ + turn_ - 1) / turn_));
  }

  // Scratch: the selection's, then the order, then the tile.
  uint64_t SelectBytes() const {
    if (parts_ > 1) return SplitRow<T>::ScratchBytes(query_, parts_);
    return RowScratch<T>(query_).bytes + (columns_ ? ColumnScratchBytes<T>(query_) : 0);
  }
  uint64_t OrderBytes() const {
    if (OrderInPlace()) return 0;
    return RoundUp((columns_ ? kMaxColumnBlock : 1) * uint64_t{query_.k} * sizeof(uint32_t));
  }
  uint64_t TileBytes() const { return tiled_ ? RoundUp(tile_rows_ * query_.n * sizeof(T)) : 0; }
  uint64_t WorkerBytes() const { return SelectBytes() + OrderBytes() + TileBytes(); }
  static uint64_t RoundUp(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

  // The order can be written directly to the output of indices.
  bool OrderInPlace() const { return !wide_index_ && axis_[kIndex] == 1 && !tiled_; }
  uint32_t* OrderAt(const Operands& operands, uint64_t index_offset, std::byte* scratch) const {
    return OrderInPlace() ? reinterpret_cast<uint32_t*>(operands.index) + index_offset
                          : reinterpret_cast<uint32_t*>(scratch + SelectBytes());
  }

  void RunItem(const Operands& operands, uint64_t item, std::byte* scratch) const {
    Offsets offsets = OffsetsOf(outer_, item / tiles_);
    if (!tiled_) {
      uint32_t* const order = OrderAt(operands, offsets[kIndex], scratch);
      SelectRow<T>(operands.input + offsets[kInput], query_, scratch, order);
      Store(operands, offsets, operands.input + offsets[kInput], 1, order, 0, query_.k);
      return;
    }
    const uint64_t first = item % tiles_ * tile_rows_;
    Advance(&offsets, first);
    for (uint64_t left = std::min(tile_rows_, neighbours_.size - first); left > 0;) {
      const uint64_t done = RunColumns(operands, offsets, left, scratch);
      const uint64_t rows = done != 0 ? done : RunTile(operands, offsets, left, scratch);
      Advance(&offsets, rows);
      left -= rows;
    }
  }

  // Returns how many of `left` adjacent sequences were done in place; 0 if none can be.
  uint64_t RunColumns(const Operands& operands, Offsets offsets, uint64_t left, std::byte* scratch) const {
    if (!columns_) return 0;
    const uint32_t block = ColumnBlock<T>();
    const uint32_t columns = left >= block ? block : block / 4;
    if (left < columns) return 0;
    const Bits* const data = operands.input + offsets[kInput];
    auto* const order = reinterpret_cast<uint32_t*>(scratch + SelectBytes());
    if (!SelectColumns<T>(data, axis_[kInput], columns, query_, scratch, order)) return 0;
    for (uint64_t c = 0; c < columns; ++c) {
      Store(operands, offsets, data + c, axis_[kInput], order + c * query_.k, 0, query_.k);
      Advance(&offsets, 1);
    }
    return columns;
  }

  // The same through a copy.
  uint64_t RunTile(const Operands& operands, Offsets offsets, uint64_t left, std::byte* scratch) const {
    const uint64_t rows = columns_ ? std::min<uint64_t>(left, ColumnBlock<T>()) : left;
    auto* const order = reinterpret_cast<uint32_t*>(scratch + SelectBytes());
    auto* row = reinterpret_cast<Bits*>(scratch + SelectBytes() + OrderBytes());
    FillTile(operands.input + offsets[kInput], neighbours_.strides[kInput], axis_[kInput], rows, query_.n,
             row);
    for (uint64_t r = 0; r < rows; ++r, row += query_.n) {
      SelectRow<T>(row, query_, scratch, order);
      Store(operands, offsets, row, 1, order, 0, query_.k);
      Advance(&offsets, 1);
    }
    return rows;
  }

  void Advance(Offsets* offsets, uint64_t rows) const {
    for (size_t o = 0; o < offsets->size(); ++o) (*offsets)[o] += rows * neighbours_.strides[o];
  }

  void RunSplit(const Operands& operands, uint64_t item, Executor* executor, std::byte* scratch) const {
    const Offsets offsets = OffsetsOf(outer_, item);
    const Bits* const row = operands.input + offsets[kInput];
    uint32_t* const order = OrderAt(operands, offsets[kIndex], scratch);
    SplitRow<T>(row, query_, parts_, scratch).Run(executor, order, [&](uint32_t first, uint32_t count) {
      Store(operands, offsets, row, 1, order, first, first + count);
    });
  }

  // Writes the places [first, last) of a sequence's outputs.
  void Store(const Operands& operands, const Offsets& offsets, const Bits* data, uint64_t stride,
             const uint32_t* order, uint32_t first, uint32_t last) const {
    Bits* const value = operands.value + offsets[kValue];
    for (uint32_t j = first; j < last; ++j) value[j * axis_[kValue]] = data[order[j] * stride];
    if (OrderInPlace()) return;
    if (wide_index_) {
      StoreIndices<uint64_t>(operands.index, offsets[kIndex], order, first, last);
    } else {
      StoreIndices<uint32_t>(operands.index, offsets[kIndex], order, first, last);
    }
  }

  template <typename Index>
  void StoreIndices(std::byte* data, uint64_t offset, const uint32_t* order, uint32_t first,
                    uint32_t last) const {
    Index* const index = reinterpret_cast<Index*>(data) + offset;
    for (uint32_t j = first; j < last; ++j) index[j * axis_[kIndex]] = order[j];
  }

  RowQuery query_;
  bool wide_index_;
  LoopNest<3> outer_;             // over rows, or over the loops around one of adjacent sequences
  LoopNest<3>::Loop neighbours_;  // sequences that are tiled; a single one if none are
  Offsets axis_{};
  bool tiled_ = false;      // sequences are not packed
  bool columns_ = false;    // and may be selected in place
  uint64_t tile_rows_ = 1;  // sequences per item
  uint64_t tiles_ = 1;      // items per iteration of outer_
  uint64_t items_ = 1;
  uint64_t turn_ = 1;  // items that a thread takes at a time
  uint32_t workers_ = 1;
  uint32_t parts_ = 1;  // the number of parts of a split row
};

std::unique_ptr<const Kernel> CreateRows(const TopKProblem& problem, RowMethod method,
                                         const LowerContext& context) {
  return DispatchByType(problem.input.type, [&]<typename T>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<TopKRows<T>>(problem, method, context.threads);
  });
}

// Rows up to this length are in L1 when they are read for the second time.
constexpr uint32_t kNearElements = 8192;
constexpr uint32_t kMaxKeysElements = kNearElements;

std::string Length(const TopKProblem& problem) {
  return StrCat("K is ", problem.k(), " of ", problem.n(), " elements");
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKRank(const TopKProblem& problem, const LowerContext& context,
                                             std::string* why_not) {
  if (problem.n() <= kMaxAllElements) return CreateRows(problem, RowMethod::kAll, context);
  *why_not = StrCat(Length(problem), "; it compares all with all, up to ", kMaxAllElements);
  return nullptr;
}

std::unique_ptr<const Kernel> CreateTopKMaxima(const TopKProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  if (problem.n() >= kMinMaximaElements &&
      problem.k() <= std::min(kMaxMaximaPlaces, problem.n() / kMaximaGroup)) {
    return CreateRows(problem, RowMethod::kMaxima, context);
  }
  *why_not = StrCat(Length(problem), "; it takes ", kMinMaximaElements, " elements or more and K up to ",
                    kMaxMaximaPlaces, " and 1/", kMaximaGroup, " of them");
  return nullptr;
}

std::string TopKMaximaBetterNot(const TopKProblem& problem, const LowerContext&) {
  if (problem.n() <= kNearElements) return {};
  return StrCat(Length(problem), ": it reads the sequence twice, which pays up to ", kNearElements);
}

std::unique_ptr<const Kernel> CreateTopKSample(const TopKProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  if (problem.n() >= kMinSampleElements) return CreateRows(problem, RowMethod::kSample, context);
  *why_not = StrCat(Length(problem), "; it takes ", kMinSampleElements, " or more");
  return nullptr;
}

std::string TopKSampleBetterNot(const TopKProblem& problem, const LowerContext&) {
  if (problem.n() > kNearElements || (problem.n() > 2048 && problem.k() <= problem.n() / 8)) return {};
  return StrCat(Length(problem), ": counting in a copy of the keys is faster");
}

std::unique_ptr<const Kernel> CreateTopKKeys(const TopKProblem& problem, const LowerContext& context,
                                             std::string* why_not) {
  if (problem.n() <= kMaxKeysElements) return CreateRows(problem, RowMethod::kKeys, context);
  *why_not = StrCat(Length(problem), "; it copies the keys, up to ", kMaxKeysElements);
  return nullptr;
}

}  // namespace anydml
