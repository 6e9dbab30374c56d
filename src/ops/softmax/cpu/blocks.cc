// Softmax on CPUs: the maximum, the sum of the powers, the results. Contiguous sets are processed one by one;
// short sets, and those with strides, as many at a time as are side by side.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/common/parallel.h"
#include "ops/common/stream_copy.h"
#include "ops/numbers/load_store.h"
#include "ops/numbers/math/lane_math.h"
#include "ops/numbers/reduce_loops.h"
#include "ops/numbers/softmax_loops.h"
#include "ops/softmax/problem.h"

namespace anydml {
namespace {

constexpr uint32_t kRow = 8192;  // elements of a set that are kept on the stack
constexpr uint32_t kTileRows = 8, kTileColumns = 512;
constexpr uint64_t kShortSet = 16, kManySets = 16;  // below this, a row would end before a vector is full
constexpr uint64_t kAddedInFloat = 64;              // elements of a column that are added before their sum
                                                    // goes to a wider one
constexpr uint64_t kPartElements = 1 << 14;         // enough for another thread

class SoftmaxBlocks final : public Kernel {
 public:
  SoftmaxBlocks(const SoftmaxProblem& problem, const LowerContext& context)
      : is_log_(problem.kind == SoftmaxKind::kLogSoftmax),
        load_(FindLoad(problem.input.type, Class::kF32)),
        store_(FindStore(Class::kF32, problem.output.type)),
        maximum_(FindReduceLoops(Accumulation::kMax, false, Class::kF32)) {
    SoftmaxNests nests = NestsOf(problem);
    elements_ = Iterations(nests.elements);
    inner_ = TakeInnermost(&nests.sets);
    run_ = TakeInnermost(&nests.elements);
    sets_ = nests.sets;
    outer_ = nests.elements;
    by_columns_ = (elements_ <= kShortSet && inner_.size >= kManySets) ||
                  (inner_.size > 1 && (elements_ == 1 || inner_.strides[0] < run_.strides[0]));
    const bool is_float32 = problem.input.type == DataType::kFloat32;
    direct_ = is_float32 && (by_columns_ ? inner_.strides[0] : run_.strides[0]) == 1;
    direct_row_ =
        is_float32 && !by_columns_ && outer_.rank == 0 && run_.strides[0] == 1 && run_.strides[1] == 1;
    // Whole cache lines, so that none is written partially, if a row begins with one.
    streams_ = direct_row_ && elements_ <= kRow && elements_ % 16 == 0 &&
               StreamsResults(ElementCount(problem.input) * sizeof(float));
    block_ = by_columns_ ? std::min<uint64_t>(kTileColumns, inner_.size) : 1;
    blocks_per_line_ = (inner_.size + block_ - 1) / block_;
    blocks_ = Iterations(sets_) * blocks_per_line_;
    const uint64_t wanted = ElementCount(problem.input) / kPartElements;
    parts_ = context.threads <= 1
                 ? 1
                 : static_cast<uint32_t>(std::clamp<uint64_t>(
                       wanted, 1, std::min<uint64_t>(blocks_, uint64_t{8} * context.threads)));
  }

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* const input = arguments.inputs[0].data;
    std::byte* const output = arguments.outputs[0].data;
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      for (uint64_t b = PartBegin(blocks_, part, parts_); b < PartBegin(blocks_, part + 1, parts_); ++b) {
        auto start = OffsetsOf(sets_, b / blocks_per_line_);
        const uint64_t first = b % blocks_per_line_ * block_;
        for (size_t o = 0; o < 2; ++o) start[o] += first * inner_.strides[o];
        if (by_columns_) {
          DoColumns(input, output, start, static_cast<uint32_t>(std::min(block_, inner_.size - first)));
        } else if (direct_row_) {
          DoDirectRow(reinterpret_cast<const float*>(input) + start[0],
                      reinterpret_cast<float*>(output) + start[1]);
        } else if (elements_ <= kRow) {
          DoRow(input, output, start);
        } else {
          DoLongRow(input, output, start);
        }
      }
      if (streams_) EndStream();
    });
    return {};
  }

 private:
  using Offsets = LoopNest<2>::Offsets;

  void AddToMaximum(const float* x, uint64_t count, float* max) const {
    maximum_.row(x, count, 0, Accumulators{max, nullptr});
  }

  // x and y may be the same.
  void DoNeighbours(const float* x, uint64_t count, float* y) const {
    float max = -lane::kInfinity;
    AddToMaximum(x, count, &max);
    const auto sum = static_cast<float>(ExpOfRow(x, count, max, is_log_ ? nullptr : y));
    if (std::isnan(sum)) {  // then all results are NaN
      std::fill_n(y, count, lane::kNan);
    } else if (is_log_) {
      ShiftRow(x, count, max, lane::Log(lane::Tag<float>(), sum), y);
    } else {
      ScaleRow(y, count, 1 / sum, y);
    }
  }

  void DoDirectRow(const float* x, float* y) const {
    if (!streams_ || reinterpret_cast<uintptr_t>(y) % 64 != 0 || x == y) return DoNeighbours(x, elements_, y);
    alignas(64) float row[kRow];
    DoNeighbours(x, elements_, row);
    StreamCopy(reinterpret_cast<std::byte*>(y), reinterpret_cast<const std::byte*>(row),
               elements_ * sizeof(float));
  }

  void DoRow(const std::byte* input, std::byte* output, const Offsets& start) const {
    alignas(64) float row[kRow];
    float* at = row;
    ForEach(outer_, start, [&](const Offsets& offsets) {
      load_(input, {.columns = run_.size, .column_stride = run_.strides[0], .offset = offsets[0]}, at);
      at += run_.size;
    });
    DoNeighbours(row, elements_, row);
    at = row;
    ForEach(outer_, start, [&](const Offsets& offsets) {
      store_(at, {.columns = run_.size, .column_stride = run_.strides[1], .offset = offsets[1]}, output);
      at += run_.size;
    });
  }

  // Calls body(x, count, place of the results) for pieces of a set.
  template <typename Body>
  void ForEachPiece(const std::byte* input, const Offsets& start, Body&& body) const {
    alignas(64) float piece[kRow];
    ForEach(outer_, start, [&](const Offsets& offsets) {
      for (uint64_t at = 0; at < run_.size; at += kRow) {
        const uint64_t count = std::min<uint64_t>(kRow, run_.size - at);
        const Block from = {
            .columns = count, .column_stride = run_.strides[0], .offset = offsets[0] + at * run_.strides[0]};
        load_(input, from, piece);
        const Block to = {
            .columns = count, .column_stride = run_.strides[1], .offset = offsets[1] + at * run_.strides[1]};
        body(piece, count, to);
      }
    });
  }

  void DoLongRow(const std::byte* input, std::byte* output, const Offsets& start) const {
    float max = -lane::kInfinity;
    ForEachPiece(input, start,
                 [&](const float* x, uint64_t count, const Block&) { AddToMaximum(x, count, &max); });
    double sum = 0;
    ForEachPiece(input, start, [&](const float* x, uint64_t count, const Block&) {
      sum += ExpOfRow(x, count, max, nullptr);
    });
    const float factor = 1 / static_cast<float>(sum);
    const float log = lane::Log(lane::Tag<float>(), static_cast<float>(sum));
    ForEachPiece(input, start, [&](float* x, uint64_t count, const Block& to) {
      if (std::isnan(log)) {
        std::fill_n(x, count, lane::kNan);
      } else if (is_log_) {
        ShiftRow(x, count, max, log, x);
      } else {
        ExpOfRow(x, count, max, x);
        ScaleRow(x, count, factor, x);
      }
      store_(x, to, output);
    });
  }

  // Calls body(tile, place of the results) for tiles of sets that are side by side.
  template <typename Body>
  void ForEachTile(const std::byte* input, const Offsets& start, uint32_t columns, Body&& body) const {
    alignas(64) float loaded[kTileRows * kTileColumns];
    ForEach(outer_, start, [&](const Offsets& offsets) {
      for (uint64_t at = 0; at < run_.size; at += kTileRows) {
        const auto rows = static_cast<uint32_t>(std::min<uint64_t>(kTileRows, run_.size - at));
        const uint64_t from = offsets[0] + at * run_.strides[0];
        SoftmaxTile tile = {reinterpret_cast<const float*>(input) + from, run_.strides[0], rows, columns};
        if (!direct_) {
          load_(input,
                {.rows = rows,
                 .columns = columns,
                 .row_stride = run_.strides[0],
                 .column_stride = inner_.strides[0],
                 .offset = from},
                loaded);
          tile.elements = loaded;
          tile.row_stride = columns;
        }
        body(tile, Block{.rows = rows,
                         .columns = columns,
                         .row_stride = run_.strides[1],
                         .column_stride = inner_.strides[1],
                         .offset = offsets[1] + at * run_.strides[1]});
      }
    });
  }

  void DoColumns(const std::byte* input, std::byte* output, const Offsets& start, uint32_t columns) const {
    alignas(64) float maxima[kTileColumns], sums[kTileColumns], results[kTileRows * kTileColumns];
    std::fill_n(maxima, columns, -lane::kInfinity);
    std::fill_n(sums, columns, 0.0f);
    double totals[kTileColumns];
    std::fill_n(totals, columns, 0.0);
    uint64_t added = 0;  // rows added to `sums`
    const auto add_up = [&] {
      for (uint32_t i = 0; i < columns; ++i) totals[i] += std::exchange(sums[i], 0.0f);
      added = 0;
    };
    ForEachTile(input, start, columns, [&](const SoftmaxTile& tile, const Block&) {
      maximum_.columns({tile.elements, tile.row_stride, tile.rows, columns, 0}, {maxima, nullptr});
    });
    // If possible, the powers are kept in the output.
    const bool keeps = !is_log_ && direct_ && inner_.strides[1] == 1;
    const auto kept = [&](const Block& to) {
      return keeps ? reinterpret_cast<float*>(output) + to.offset : nullptr;
    };
    ForEachTile(input, start, columns, [&](const SoftmaxTile& tile, const Block& to) {
      AddExpOfColumns(tile, maxima, sums, kept(to), to.row_stride);
      if ((added += tile.rows) >= kAddedInFloat) add_up();
    });
    add_up();
    for (uint32_t i = 0; i < columns; ++i) {
      const auto sum = static_cast<float>(totals[i]);
      sums[i] = is_log_ ? lane::Log(lane::Tag<float>(), sum) : 1 / sum;
    }
    ForEachTile(input, start, columns, [&](const SoftmaxTile& tile, const Block& to) {
      if (keeps) return ScaleColumns(tile, sums, kept(to), to.row_stride);
      if (is_log_) {
        LogSoftmaxOfColumns(tile, maxima, sums, results);
      } else {
        SoftmaxOfColumns(tile, maxima, sums, results);
      }
      store_(results, to, output);
    });
  }

  bool is_log_;
  LoadBlock load_;
  StoreBlock store_;
  ReduceLoops maximum_;
  uint64_t elements_;        // per set
  LoopNest<2>::Loop inner_;  // over the sets
  LoopNest<2>::Loop run_;    // over a set's elements
  LoopNest<2> sets_;         // around inner_
  LoopNest<2> outer_;        // around run_
  bool by_columns_;          // vector lanes belong to different sets
  bool direct_;              // elements need no conversion when they are read
  bool direct_row_;          // nor when they are written, and a set is contiguous
  bool streams_;             // rows are stored non-temporally
  uint64_t block_;           // sets per block
  uint64_t blocks_per_line_, blocks_;
  uint32_t parts_;  // for threads
};

}  // namespace

std::unique_ptr<const Kernel> CreateSoftmaxCpu(const SoftmaxProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  if (problem.kind == SoftmaxKind::kHardmax) {
    *why_not = "is not for HARDMAX";
    return nullptr;
  }
  return std::make_unique<SoftmaxBlocks>(problem, context);
}

}  // namespace anydml
