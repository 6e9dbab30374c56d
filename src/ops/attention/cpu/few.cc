// Few queries of a head of keys, as when tokens are generated one by one: keys and values are read once,
// where they are.
#include <algorithm>

#include "ops/attention/cpu/rows.h"
#include "ops/common/nest_parts.h"
#include "ops/gemm/cpu/few_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kMostQueries = 8;

// Neighbouring rows of a head.
struct Segment {
  const std::byte* data;
  uint64_t stride;  // from row to row, in elements
  uint64_t first;   // among all keys
  uint64_t rows;
};

class AttentionFewCpu final : public AttentionOperands {
 public:
  AttentionFewCpu(const AttentionProblem& problem, uint32_t threads)
      : AttentionOperands(problem, {.matrices = false}),
        loops_(problem.type, threads),
        few_(FindFewRows(problem.type)),
        load_(FindLoad(problem.type, Class::kF32)),
        width_(BitSize(problem.type) / 8),
        rows_(problem.group * problem.queries) {
    const uint64_t columns = problem.key.columns + problem.value.columns;
    items_ = problem.batch * problem.KeyHeads();
    workers_ = static_cast<uint32_t>(
        std::min<uint64_t>(items_, PartsForBytes(items_ * problem.keys * columns * width_, threads)));
    worker_floats_ = rows_ * (problem.keys + columns);
    scratch_ = AddScratch("rows", workers_ * worker_floats_ * sizeof(float));
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    SharedParts shared(items_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const scratch = scratch_.In<float>(arguments.temporary) + worker * worker_floats_;
      for (uint64_t item; shared.Take(worker, &item);) {
        RunHead(item / problem().KeyHeads(), item % problem().KeyHeads(), arguments, scratch);
      }
    });
    return {};
  }

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    loops_.Join(join, memory, arguments.executor);
  }

  // Of row r of a group.
  uint64_t HeadOf(uint64_t key_head, uint64_t r) const {
    return key_head * problem().group + r / problem().queries;
  }
  uint64_t QueryOf(uint64_t r) const { return r % problem().queries; }

  // Calls body(segment) for the first `keys` rows: those of the past, then new ones.
  template <typename Body>
  void ForSegments(const AttentionJoin& join, const int32_t* lengths, uint64_t batch, uint64_t head,
                   uint64_t keys, const KernelArguments& arguments, const Body& body) const {
    const uint64_t past = std::min(join.lengths.exists ? join.lengths.Of(lengths, batch) : join.past, keys);
    const auto segment = [&](std::span<const Buffer> buffers, const AttentionView& view, uint64_t first,
                             uint64_t rows) {
      body(Segment{buffers[view.binding].data + view.At(batch, head, 0) * width_, view.row, first, rows});
    };
    const std::span<const Buffer> of_past = join.lengths.exists ? arguments.outputs : arguments.inputs;
    if (past > 0) segment(of_past, join.past_view, 0, past);
    if (past < keys) segment(arguments.inputs, join.fresh_view, past, keys - past);
  }

  void RunHead(uint64_t batch, uint64_t head, const KernelArguments& arguments, float* scratch) const {
    const AttentionProblem& p = problem();
    const AttentionWeightsMemory memory = WeightsMemory(arguments);
    const uint64_t keys = KeysOf(weights(), memory.lengths, batch, p.queries - 1);  // of the last query: most
    float* const queries = scratch;
    float* const logits = queries + rows_ * p.key.columns;
    float* const sums = logits + rows_ * p.keys;
    for (uint64_t r = 0; r < rows_; ++r) {
      const Block block = {.columns = p.key.columns,
                           .column_stride = p.query.column,
                           .offset = p.query.At(batch, HeadOf(head, r), QueryOf(r))};
      load_(arguments.inputs[p.query.binding].data, block, queries + r * p.key.columns);
    }
    ForSegments(key().join, memory.lengths, batch, head, keys, arguments,
                [&](const Segment& segment) { Multiply(segment, queries, logits); });
    for (uint64_t r = 0; r < rows_; ++r) {
      loops_.Weigh(weights(), memory, batch, HeadOf(head, r), QueryOf(r), p.scale, keys, logits + r * p.keys);
    }
    std::fill_n(sums, rows_ * p.value.columns, 0.0f);
    ForSegments(value().join, memory.lengths, batch, head, keys, arguments,
                [&](const Segment& segment) { AddUp(segment, logits, memory.lengths, batch, sums); });
    for (uint64_t r = 0; r < rows_; ++r) {
      const uint64_t at = p.output.At(batch, HeadOf(head, r), QueryOf(r));
      loops_.StoreRow(sums + r * p.value.columns, p.value.columns, at, p.output.column,
                      arguments.outputs[0].data);
    }
  }

  void Multiply(const Segment& segment, const float* queries, float* logits) const {
    const AttentionProblem& p = problem();
    for (uint64_t k = 0; k < segment.rows; k += kFewAtATime) {
      const uint64_t some = std::min<uint64_t>(kFewAtATime, segment.rows - k);
      for (uint64_t r = 0; r < rows_; ++r) {
        const float* const query = queries + r * p.key.columns;
        float* const to = logits + r * p.keys + segment.first + k;
        const std::byte* const from = segment.data + k * segment.stride * width_;
        if (some == kFewAtATime) {
          few_.dot(query, from, segment.stride, p.key.columns, to);
          continue;
        }
        for (uint64_t i = 0; i < some; ++i) {
          float same[kFewAtATime];  // of one key
          few_.dot(query, from + i * segment.stride * width_, 0, p.key.columns, same);
          to[i] = same[0];
        }
      }
    }
  }

  // Values of keys that a query does not see are not looked at.
  void AddUp(const Segment& segment, const float* rows_of_weights, const int32_t* lengths, uint64_t batch,
             float* sums) const {
    const AttentionProblem& p = problem();
    for (uint64_t k = 0; k < segment.rows; k += kFewAtATime) {
      const uint64_t key = segment.first + k;
      for (uint64_t r = 0; r < rows_; ++r) {
        const uint64_t seen = KeysOf(weights(), lengths, batch, QueryOf(r));
        if (key >= seen) continue;
        const uint64_t some = std::min({uint64_t{kFewAtATime}, segment.rows - k, seen - key});
        few_.add(rows_of_weights + r * p.keys + key, segment.data + k * segment.stride * width_,
                 segment.stride, static_cast<uint32_t>(some), p.value.columns, sums + r * p.value.columns);
      }
    }
  }

  AttentionRowLoops loops_;
  FewRows few_;
  LoadBlock load_;
  uint64_t width_;
  uint64_t rows_;  // queries of a group
  uint64_t items_;
  uint32_t workers_;
  uint64_t worker_floats_;
  ScratchLayout::Piece scratch_;
};

bool HasContiguousRows(const AttentionRows& rows) {
  return (!rows.past.exists || rows.past.column == 1) && (!rows.fresh.exists || rows.fresh.column == 1);
}

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionFewCpu(const AttentionProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  const bool reads_present = problem.lengths.exists;
  if (problem.group * problem.queries > kMostQueries) {
    *why_not = StrCat("there are more than ", kMostQueries, " queries for a head of keys");
  } else if (problem.query_bias.exists) {
    *why_not = "there is a bias";
  } else if (!HasContiguousRows(problem.key) || !HasContiguousRows(problem.value) ||
             (reads_present && (problem.key.present.column != 1 || problem.value.present.column != 1))) {
    *why_not = "columns of keys or values are not contiguous";
  } else {
    return std::make_unique<AttentionFewCpu>(problem, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
