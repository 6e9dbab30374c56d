// Processes several queries of a head at a time; their logits stay in L2.
#include <algorithm>
#include <array>

#include "ops/attention/cpu/row_loops.h"
#include "ops/common/parallel.h"
#include "ops/product/operands.h"

namespace anydml {
namespace {

constexpr uint64_t kLogits = uint64_t{1} << 17;       // 512 KiB
constexpr uint64_t kLeastRows = 24, kMostRows = 144;  // whole tiles of 4, 6 or 8
constexpr uint64_t kLine = 16;                        // floats per cache line
constexpr uint64_t kMostKeys = uint64_t{1} << 22;
constexpr uint64_t kMostBytesAskedFor = 128 << 10;  // of keys or values of a head, to prefetch
// With fewer multiplications, a thread costs more to wake than it saves.
constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;

constexpr uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

// Receives rows of a block's output and records which of them have NaNs.
class BlockSink final : public ProductSink {
 public:
  BlockSink(const AttentionProblem& problem, const AttentionRowLoops& loops, uint64_t batch,
            uint64_t key_head, uint64_t first_row, std::byte* output, std::array<bool, kMostRows>* nans)
      : problem_(problem),
        loops_(loops),
        batch_(batch),
        first_head_(key_head * problem.group),
        first_row_(first_row),
        output_(output),
        nans_(nans) {}

  void Finish(uint64_t row, uint64_t column, uint64_t count, float* sums) const override {
    if (nans_ != nullptr && HasNan(sums, count)) (*nans_)[row] = true;
    const AttentionView& view = problem_.output;
    const uint64_t number = first_row_ + row;
    const uint64_t at =
        view.At(batch_, first_head_ + number / problem_.queries, number % problem_.queries, column);
    loops_.StoreRow(sums, count, at, view.column, output_);
  }

 private:
  const AttentionProblem& problem_;
  const AttentionRowLoops& loops_;
  uint64_t batch_, first_head_, first_row_;
  std::byte* output_;
  std::array<bool, kMostRows>* nans_;  // null: not wanted
};

// The size of panels of a head's keys or values, for all blocks of its queries.
uint64_t PanelFloats(uint64_t count, uint64_t steps) {
  return RoundUp(RoundUp(count, GemmMicroKernel().columns) * steps, 16);
}
void PackPanels(const PanelSource& from, uint64_t count, uint64_t steps, float* to) {
  const uint32_t width = GemmMicroKernel().columns;
  for (uint64_t first = 0; first < count; first += width) {
    from.Pack(first, std::min<uint64_t>(width, count - first), 0, steps, width, to + first * steps);
  }
}

class AttentionBlocks final : public AttentionOperands {
 public:
  AttentionBlocks(const AttentionProblem& problem, uint32_t threads)
      : AttentionOperands(problem, {}), loops_(problem.type, threads) {
    const uint64_t rows = problem.group * problem.queries, heads = problem.batch * problem.KeyHeads();
    // With fewer heads than threads: as many blocks as there are threads.
    const uint64_t wanted = (threads + heads - 1) / heads;
    const uint64_t most = std::clamp(kLogits / problem.keys, kLeastRows, kMostRows);
    block_rows_ =
        std::min({RoundUp((rows + wanted - 1) / wanted, kLeastRows), most / kLeastRows * kLeastRows, rows});
    blocks_ = (rows + block_rows_ - 1) / block_rows_;
    items_ = heads * blocks_;
    const uint64_t products = heads * rows * problem.keys * (problem.key.columns + problem.value.columns);
    workers_ = static_cast<uint32_t>(
        std::clamp<uint64_t>(products / kProductsPerThread, 1, std::min<uint64_t>(threads, items_)));
    // An odd number of cache lines: rows that begin a page apart evict each other.
    logits_stride_ = RoundUp(problem.keys, kLine) | kLine;
    logits_floats_ = block_rows_ * logits_stride_;
    panel_floats_ =
        std::max(ProductScratch(block_rows_, problem.keys, problem.key.columns, /*sums_in_scratch=*/false),
                 ProductScratch(block_rows_, problem.value.columns, problem.keys, /*sums_in_scratch=*/true));
    worker_floats_ = logits_floats_ + panel_floats_;
    if (blocks_ > 1) {
      key_floats_ = PanelFloats(problem.keys, problem.key.columns);
      // With lengths, blocks see different numbers of keys, which are steps here.
      if (!problem.lengths.exists) value_floats_ = PanelFloats(problem.value.columns, problem.keys);
      worker_floats_ += key_floats_ + value_floats_;
    }
    scratch_ = AddScratch("blocks", workers_ * worker_floats_ * sizeof(float));
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    SharedParts shared(items_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const scratch = scratch_.In<float>(arguments.temporary) + worker * worker_floats_;
      uint64_t packed_head = ~uint64_t{0};
      for (uint64_t item; shared.Take(worker, &item);) {
        const uint64_t head = item / blocks_;
        RunBlock(item, head != packed_head, arguments, scratch);
        packed_head = head;
      }
    });
    return {};
  }

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    loops_.Join(join, memory, arguments.executor);
  }

  // The rows of key head `head` as elements or steps of panels.
  StridedPanels Panels(const Operand& operand, const GemmMatrix& matrix, uint64_t batch, uint64_t head,
                       bool rows_are_steps, const KernelArguments& arguments) const {
    const uint64_t at = batch * matrix.batch[0] + head * matrix.batch[1];
    const std::byte* const data = BufferOf(operand, arguments).data + at * (BitSize(operand.type) / 8);
    return rows_are_steps ? StridedPanels(data, operand.type, matrix.column, matrix.row)
                          : StridedPanels(data, operand.type, matrix.row, matrix.column);
  }
  static GemmMatrix MatrixOf(const Operand& operand) {
    const AttentionView& view = operand.view;
    return {{view.batch, view.head}, view.row, view.column};
  }

  // The largest number of keys that any of these queries sees.
  uint64_t MostKeys(const int32_t* lengths, uint64_t batch, uint64_t row, uint64_t rows) const {
    if (!weights().lengths.exists) return weights().keys;
    uint64_t most = 0;
    for (uint64_t i = row; i < row + rows; ++i) {
      most = std::max(most, KeysOf(weights(), lengths, batch, i % problem().queries));
    }
    return most;
  }

  // Prefetches the rows of the next head, which are separate pieces that hardware prefetchers do not find.
  void AskForNext(uint64_t batch, uint64_t head, const KernelArguments& arguments) const {
    const AttentionProblem& p = problem();
    if (head + 1 == p.KeyHeads()) return;
    const auto ask = [&](const Operand& operand, uint64_t first_head, uint64_t rows, uint64_t columns) {
      const AttentionView& view = operand.view;
      const uint64_t width = BitSize(operand.type) / 8, bytes = columns * width;
      if (view.column != 1 || view.row == columns || rows * bytes > kMostBytesAskedFor) return;
      const std::byte* const data = BufferOf(operand, arguments).data;
      for (uint64_t row = 0; row < rows; ++row) {
        const std::byte* const at = data + (view.At(batch, first_head, row) - view.offset) * width;
        for (uint64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i, /*rw=*/0, /*locality=*/2);
      }
    };
    ask(key(), head + 1, p.keys, p.key.columns);
    ask(value(), head + 1, p.keys, p.value.columns);
    if (RowsAreEven() && p.group == 1) ask(query(), head + 1, p.queries, p.key.columns);
  }

  // `is_first`: of the consecutive blocks of a head in this scratch.
  void RunBlock(uint64_t item, bool is_first, const KernelArguments& arguments, float* scratch) const {
    const AttentionProblem& p = problem();
    const uint64_t row = item % blocks_ * block_rows_, head = item / blocks_ % p.KeyHeads();
    const uint64_t batch = item / blocks_ / p.KeyHeads();
    const uint64_t rows = std::min(block_rows_, p.group * p.queries - row);
    const AttentionWeightsMemory memory = WeightsMemory(arguments);
    const uint64_t keys = MostKeys(memory.lengths, batch, row, rows);
    if (is_first) AskForNext(batch, head, arguments);
    const StridedPanels key_panels = Panels(key(), MatrixOf(key()), batch, head, false, arguments);
    const StridedPanels value_panels = Panels(value(), MatrixOf(value()), batch, head, true, arguments);
    float* const logits = scratch;
    float* const packed_keys = logits + logits_floats_;
    float* const packed_values = packed_keys + key_floats_;
    const std::span<float> panels(packed_values + value_floats_, panel_floats_);
    if (is_first && key_floats_ != 0) {
      PackPanels(key_panels, MostKeys(memory.lengths, batch, p.queries - 1, 1), p.key.columns, packed_keys);
    }
    if (is_first && value_floats_ != 0) PackPanels(value_panels, p.value.columns, keys, packed_values);
    RunProduct<float>({row, rows, 0, keys, p.key.columns, logits, logits_stride_},
                      Panels(query(), GroupMatrix(query().view), batch, head, false, arguments),
                      key_floats_ != 0 ? ProductOperand(packed_keys) : ProductOperand(key_panels), nullptr,
                      panels);
    for (uint64_t i = 0; i < rows; ++i) {
      loops_.Weigh(weights(), memory, batch, head * p.group + (row + i) / p.queries, (row + i) % p.queries,
                   p.scale, keys, logits + i * logits_stride_);
    }
    const bool sees_all = !p.lengths.exists || p.queries == 1;
    std::array<bool, kMostRows> nans = {};
    const BlockSink sink(p, loops_, batch, head, row, arguments.outputs[0].data, sees_all ? nullptr : &nans);
    const StridedPanels weight_panels(reinterpret_cast<std::byte*>(logits), DataType::kFloat32,
                                      logits_stride_, 1);
    RunProduct<float>({0, rows, 0, p.value.columns, keys, nullptr, 0}, weight_panels,
                      value_floats_ != 0 ? ProductOperand(packed_values) : ProductOperand(value_panels),
                      &sink, panels);
    if (sees_all) return;
    // The values of keys that a query does not see were multiplied by 0, which turns infinities into NaNs:
    // such rows are computed again without those keys, in the same order of additions.
    for (uint64_t i = 0; i < rows; ++i) {
      if (!nans[i]) continue;
      const uint64_t seen = KeysOf(weights(), memory.lengths, batch, (row + i) % p.queries);
      RunProduct<float>({i, 1, 0, p.value.columns, seen, nullptr, 0}, weight_panels, value_panels, &sink,
                        panels);
    }
  }

  AttentionRowLoops loops_;
  uint64_t block_rows_, blocks_, items_;
  uint32_t workers_;
  uint64_t logits_stride_, logits_floats_, panel_floats_, worker_floats_;
  uint64_t key_floats_ = 0, value_floats_ = 0;  // 0: not packed beforehand
  ScratchLayout::Piece scratch_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionBlocksCpu(const AttentionProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  if (problem.keys > kMostKeys) {
    *why_not = StrCat("there are more than ", kMostKeys, " keys");
    return nullptr;
  }
  return std::make_unique<AttentionBlocks>(problem, context.threads);
}

}  // namespace anydml
