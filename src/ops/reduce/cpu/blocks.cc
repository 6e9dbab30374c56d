// Reductions on CPUs. Neighbouring outputs form blocks; if there are few, the elements of each output are
// also cut into segments, whose accumulators are merged in order. The cuts depend on the problem only, except
// for positions, whose result does not depend on them.
#include <algorithm>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/numbers/load_store.h"
#include "ops/numbers/reduce_loops.h"

namespace anydml {
namespace {

constexpr uint32_t kTileRows = 32, kLoadedTileRows = 4, kLoadedTileColumns = 1024;
constexpr uint32_t kLoaded = kLoadedTileRows * kLoadedTileColumns;  // elements on the stack
constexpr uint64_t kBlockElements = 1 << 16;                        // in a block of several rows
constexpr uint64_t kSegmentElements = 1 << 15, kUnits = 32;
constexpr uint64_t kPartElements = 1 << 15;  // enough for another thread

Class ClassOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kFloat16:
      return Class::kF32;
    case DataType::kInt64:
      return Class::kI64;
    case DataType::kUInt64:
      return Class::kU64;
    case DataType::kUInt32:
    case DataType::kUInt16:
    case DataType::kUInt8:
      return Class::kU32;
    default:
      return Class::kI32;
  }
}

class ReduceBlocks final : public Kernel {
 public:
  ReduceBlocks(const ReduceProblem& problem, const LowerContext& context)
      : function_(problem.function),
        element_bytes_(BitSize(problem.input.type) / 8),
        loops_(FindReduceLoops(AccumulationOf(problem.function), problem.last, ClassOf(problem.input.type))) {
    const Class c = ClassOf(problem.input.type);
    load_ = FindLoad(problem.input.type, c);
    store_ = FindStore(IsArg(problem.function) ? Class::kU32 : c, problem.output.type);
    ReduceNests nests = NestsOf(problem);
    elements_ = Iterations(nests.reduced);
    const uint64_t all = elements_ * Iterations(nests.kept);
    inner_ = TakeInnermost(&nests.kept);
    run_ = TakeInnermost(&nests.reduced);
    kept_ = nests.kept;
    reduced_ = nests.reduced;
    by_columns_ = inner_.size > 1 && (elements_ == 1 || inner_.strides[0] < run_.strides[0]);
    if ((by_columns_ ? inner_.strides[0] : run_.strides[0]) == 1) {
      ReduceLoops halves;
      direct_ = SameBytes(problem.input.type, c);
      if (problem.input.type == DataType::kFloat16 &&
          FindHalfReduceLoops(AccumulationOf(problem.function), problem.last, &halves)) {
        direct_ = true;
        loops_ = halves;
      }
    }
    const uint64_t most = by_columns_ ? (direct_ ? kMaxReducedColumns : kLoadedTileColumns)
                                      : std::clamp<uint64_t>(kBlockElements / elements_, 1, 256);
    block_ = static_cast<uint32_t>(std::min(most, inner_.size));
    blocks_per_line_ = (inner_.size + block_ - 1) / block_;
    blocks_ = Iterations(kept_) * blocks_per_line_;
    segments_ = SegmentsFor(all, IsArg(function_) ? UnitsOfPositions(context.threads) : kUnits);
    if (segments_ > 1) {
      values_ = scratch_.Add("values", blocks_ * segments_ * block_ * kAccumulatorValueBytes);
      seconds_ = scratch_.Add("seconds", blocks_ * segments_ * block_ * kAccumulatorSecondBytes);
    }
    parts_ = context.threads <= 1
                 ? 1
                 : static_cast<uint32_t>(std::clamp<uint64_t>(
                       all / kPartElements, 1,
                       std::min<uint64_t>(blocks_ * segments_, uint64_t{8} * context.threads)));
  }

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* const input = arguments.inputs[0].data;
    std::byte* const output = arguments.outputs[0].data;
    const uint64_t units = blocks_ * segments_;
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      alignas(64) std::byte values[kMaxReducedColumns * kAccumulatorValueBytes];
      alignas(64) std::byte seconds[kMaxReducedColumns * kAccumulatorSecondBytes];
      for (uint64_t u = PartBegin(units, part, parts_); u < PartBegin(units, part + 1, parts_); ++u) {
        const Accumulators all = segments_ == 1 ? Accumulators{values, seconds} : InScratch(arguments, u);
        Accumulate(input, u / segments_, u % segments_, all);
        if (segments_ == 1) Finish(output, u, all);
      }
    });
    if (segments_ == 1) return {};
    const auto parts = static_cast<uint32_t>(std::min<uint64_t>(parts_, blocks_));
    ParallelFor(arguments.executor, parts, [&](uint32_t part) {
      for (uint64_t b = PartBegin(blocks_, part, parts); b < PartBegin(blocks_, part + 1, parts); ++b) {
        const Accumulators all = InScratch(arguments, b * segments_);
        for (uint64_t s = 1; s < segments_; ++s) {
          loops_.merge(all, InScratch(arguments, b * segments_ + s), CountOf(b));
        }
        Finish(output, b, all);
      }
    });
    return {};
  }

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }

 private:
  // The best element so far saves work on most later ones, so segments are as long as possible.
  static uint64_t UnitsOfPositions(uint32_t threads) {
    return threads <= 1 ? 1 : std::min<uint64_t>(kUnits, uint64_t{2} * threads);
  }

  uint64_t SegmentsFor(uint64_t all, uint64_t units) const {
    const uint64_t wanted = std::min((units + blocks_ - 1) / blocks_, all / blocks_ / kSegmentElements);
    return std::clamp<uint64_t>(wanted, 1, elements_);
  }

  Accumulators InScratch(const KernelArguments& arguments, uint64_t unit) const {
    return {values_.In<std::byte>(arguments.temporary), seconds_.In<std::byte>(arguments.temporary),
            unit * block_};
  }

  uint32_t CountOf(uint64_t block) const {
    return static_cast<uint32_t>(std::min<uint64_t>(block_, inner_.size - block % blocks_per_line_ * block_));
  }

  LoopNest<2>::Offsets StartOf(uint64_t block) const {
    auto start = OffsetsOf(kept_, block / blocks_per_line_);
    const uint64_t first = block % blocks_per_line_ * block_;
    for (size_t o = 0; o < 2; ++o) start[o] += first * inner_.strides[o];
    return start;
  }

  // Calls body(offset, count, position) for the runs of the innermost loop in a segment.
  template <typename Body>
  void ForEachRun(uint64_t segment, Body&& body) const {
    const auto begin_of = [&](uint64_t s) {
      return PartBegin(elements_, static_cast<uint32_t>(s), static_cast<uint32_t>(segments_));
    };
    const uint64_t end = begin_of(segment + 1);
    for (uint64_t at = begin_of(segment); at < end;) {
      const uint64_t inside = at % run_.size, count = std::min(run_.size - inside, end - at);
      body(OffsetsOf(reduced_, at / run_.size)[0] + inside * run_.strides[0], count,
           static_cast<uint32_t>(at));
      at += count;
    }
  }

  void Accumulate(const std::byte* input, uint64_t block, uint64_t segment, const Accumulators& all) const {
    const uint32_t count = CountOf(block);
    const uint64_t start = StartOf(block)[0];
    loops_.start(all, count);
    if (by_columns_) {
      ForEachRun(segment, [&](uint64_t offset, uint64_t rows, uint32_t position) {
        AddColumns(input, start + offset, rows, position, count, all);
      });
      return;
    }
    for (uint32_t i = 0; i < count; ++i) {
      const Accumulators one = {all.values, all.seconds, all.at + i};
      ForEachRun(segment, [&](uint64_t offset, uint64_t length, uint32_t position) {
        AddRow(input, start + i * inner_.strides[0] + offset, length, position, one);
      });
    }
  }

  void AddRow(const std::byte* input, uint64_t offset, uint64_t length, uint32_t position,
              const Accumulators& one) const {
    if (direct_) return loops_.row(input + offset * element_bytes_, length, position, one);
    alignas(64) uint64_t loaded[kLoaded / 2];
    for (uint64_t at = 0; at < length; at += kLoaded / 2) {
      const uint64_t count = std::min<uint64_t>(kLoaded / 2, length - at);
      load_(input,
            {.columns = count, .column_stride = run_.strides[0], .offset = offset + at * run_.strides[0]},
            loaded);
      loops_.row(loaded, count, position + static_cast<uint32_t>(at), one);
    }
  }

  void AddColumns(const std::byte* input, uint64_t offset, uint64_t rows, uint32_t position, uint32_t columns,
                  const Accumulators& all) const {
    alignas(64) uint64_t loaded[kLoaded];
    const uint32_t most = direct_ ? kTileRows : kLoadedTileRows;
    for (uint64_t at = 0; at < rows; at += most) {
      ReduceTile tile = {.elements = input + (offset + at * run_.strides[0]) * element_bytes_,
                         .row_stride = run_.strides[0],
                         .rows = static_cast<uint32_t>(std::min<uint64_t>(most, rows - at)),
                         .columns = columns,
                         .position = position + static_cast<uint32_t>(at)};
      if (!direct_) {
        load_(input,
              {.rows = tile.rows,
               .columns = columns,
               .row_stride = run_.strides[0],
               .column_stride = inner_.strides[0],
               .offset = offset + at * run_.strides[0]},
              loaded);
        tile.elements = loaded;
        tile.row_stride = columns;
      }
      loops_.columns(tile, all);
    }
  }

  void Finish(std::byte* output, uint64_t block, const Accumulators& all) const {
    alignas(64) uint64_t results[kMaxReducedColumns];
    const uint32_t count = CountOf(block);
    loops_.finish(all, count, function_, static_cast<float>(elements_), results);
    store_(results, {.columns = count, .column_stride = inner_.strides[1], .offset = StartOf(block)[1]},
           output);
  }

  ReduceFunction function_;
  uint32_t element_bytes_;
  ReduceLoops loops_;
  LoadBlock load_;
  StoreBlock store_;
  uint64_t elements_;         // per output
  LoopNest<2>::Loop inner_;   // of the outputs
  LoopNest<1>::Loop run_;     // of the elements
  LoopNest<2> kept_;          // around inner_
  LoopNest<1> reduced_;       // around run_
  bool by_columns_;           // contiguous elements belong to different outputs
  bool direct_ = false;       // loops read elements without conversion
  uint32_t block_;            // outputs per block
  uint64_t blocks_per_line_;  // of inner_
  uint64_t blocks_;
  uint64_t segments_;  // of each block's elements
  uint32_t parts_;     // for threads
  ScratchLayout scratch_;
  ScratchLayout::Piece values_, seconds_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateReduceCpu(const ReduceProblem& problem, const LowerContext& context,
                                              std::string*) {
  return std::make_unique<ReduceBlocks>(problem, context);
}

}  // namespace anydml
