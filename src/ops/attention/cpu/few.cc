// Few queries of a head of keys, as when tokens are generated one by one: keys and values are read once,
// where they are.
#include <algorithm>

#include "ops/attention/cpu/rows.h"
#include "ops/common/nest_parts.h"
#include "ops/gemm/cpu/few_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kMostQueries = 8;
// Keys that all heads of a part are done with before the next ones: heads mostly lie side by side, and memory
// is read from its beginning to its end. A multiple of kFewAtATime.
constexpr uint64_t kKeysAtATime = 16;

// Neighbouring rows of a head.
struct Segment {
  const std::byte* data;
  uint64_t stride;  // from row to row, in elements
  uint64_t first;   // among all keys
  uint64_t rows;
  uint64_t ahead;  // elements from these to those that are read some time later; 0: nobody knows
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
    const uint64_t heads = problem.KeyHeads(), all = problem.batch * heads;
    workers_ = static_cast<uint32_t>(
        std::min<uint64_t>(all, PartsForBytes(all * problem.keys * columns * width_, threads)));
    // Two parts or more for each worker: not all are equally fast.
    const uint64_t parts = workers_ == 1 ? 1 : (2 * workers_ + problem.batch - 1) / problem.batch;
    parts_of_heads_ = static_cast<uint32_t>(std::min(parts, heads));
    head_floats_ = rows_ * (problem.keys + columns);
    worker_floats_ = (heads + parts_of_heads_ - 1) / parts_of_heads_ * head_floats_;
    scratch_ = AddScratch("rows", workers_ * worker_floats_ * sizeof(float));
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    SharedParts shared(problem().batch * parts_of_heads_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const scratch = scratch_.In<float>(arguments.temporary) + worker * worker_floats_;
      for (uint64_t item; shared.Take(worker, &item);) {
        const uint64_t heads = problem().KeyHeads(), part = item % parts_of_heads_;
        const uint64_t begin = PartBegin(heads, part, parts_of_heads_);
        const uint64_t end = PartBegin(heads, part + 1, parts_of_heads_);
        RunHeads(item / parts_of_heads_, begin, end, arguments, scratch);
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

  // Of one head of keys.
  struct Scratch {
    float* queries;
    float* logits;
    float* sums;
  };
  Scratch ScratchOf(float* scratch, uint64_t number) const {
    float* const queries = scratch + number * head_floats_;
    float* const logits = queries + rows_ * problem().key.columns;
    return {queries, logits, logits + rows_ * problem().keys};
  }

  // Calls body(segment, number) for some of the first `keys` rows of each head from `begin` to `end`, whose
  // number is counted from 0, then for the next ones: rows of the past, then new ones.
  template <typename Body>
  void ForSegments(const AttentionJoin& join, const int32_t* lengths, uint64_t batch, uint64_t begin,
                   uint64_t end, uint64_t keys, const KernelArguments& arguments, const Body& body) const {
    const uint64_t past = std::min(join.lengths.exists ? join.lengths.Of(lengths, batch) : join.past, keys);
    const auto segments = [&](std::span<const Buffer> buffers, const AttentionView& view, uint64_t first,
                              uint64_t rows) {
      const std::byte* const data = buffers[view.binding].data;
      for (uint64_t row = 0; row < rows; row += kKeysAtATime) {
        const uint64_t some = std::min(kKeysAtATime, rows - row);
        for (uint64_t head = begin; head < end; ++head) {
          body(Segment{data + view.At(batch, head, row) * width_, view.row, first + row, some,
                       Ahead(view, join.columns, head - begin, end - begin)},
               head - begin);
        }
      }
    };
    if (past > 0)
      segments(join.lengths.exists ? arguments.outputs : arguments.inputs, join.past_view, 0, past);
    if (past < keys) segments(arguments.inputs, join.fresh_view, past, keys - past);
  }

  // From rows of head `number` of `heads` on, which lie side by side, to those that are read when some bytes
  // more were: those of another head, or of the next keys.
  uint64_t Ahead(const AttentionView& view, uint64_t columns, uint64_t number, uint64_t heads) const {
    constexpr uint64_t kBytes = 1024;
    if (view.head != columns) return 0;
    const uint64_t at = number * columns, then = at + kBytes / width_, all = heads * columns;
    return then / all * kKeysAtATime * view.row + then % all - at;
  }

  void RunHeads(uint64_t batch, uint64_t begin, uint64_t end, const KernelArguments& arguments,
                float* scratch) const {
    const AttentionProblem& p = problem();
    const AttentionWeightsMemory memory = WeightsMemory(arguments);
    const uint64_t keys = KeysOf(weights(), memory.lengths, batch, p.queries - 1);  // of the last query: most
    for (uint64_t head = begin; head < end; ++head)
      LoadQueries(batch, head, arguments, ScratchOf(scratch, head - begin));
    ForSegments(key().join, memory.lengths, batch, begin, end, keys, arguments,
                [&](const Segment& segment, uint64_t number) {
                  const Scratch own = ScratchOf(scratch, number);
                  Multiply(segment, own.queries, own.logits);
                });
    for (uint64_t head = begin; head < end; ++head) {
      const Scratch own = ScratchOf(scratch, head - begin);
      for (uint64_t r = 0; r < rows_; ++r) {
        loops_.Weigh(weights(), memory, batch, HeadOf(head, r), QueryOf(r), p.scale, keys,
                     own.logits + r * p.keys);
      }
      std::fill_n(own.sums, rows_ * p.value.columns, 0.0f);
    }
    ForSegments(value().join, memory.lengths, batch, begin, end, keys, arguments,
                [&](const Segment& segment, uint64_t number) {
                  const Scratch own = ScratchOf(scratch, number);
                  AddUp(segment, own.logits, memory.lengths, batch, own.sums);
                });
    for (uint64_t head = begin; head < end; ++head)
      StoreSums(batch, head, ScratchOf(scratch, head - begin), arguments);
  }

  void LoadQueries(uint64_t batch, uint64_t head, const KernelArguments& arguments,
                   const Scratch& own) const {
    const AttentionProblem& p = problem();
    for (uint64_t r = 0; r < rows_; ++r) {
      const Block block = {.columns = p.key.columns,
                           .column_stride = p.query.column,
                           .offset = p.query.At(batch, HeadOf(head, r), QueryOf(r))};
      load_(arguments.inputs[p.query.binding].data, block, own.queries + r * p.key.columns);
    }
  }

  void StoreSums(uint64_t batch, uint64_t head, const Scratch& own, const KernelArguments& arguments) const {
    const AttentionProblem& p = problem();
    for (uint64_t r = 0; r < rows_; ++r) {
      const uint64_t at = p.output.At(batch, HeadOf(head, r), QueryOf(r));
      loops_.StoreRow(own.sums + r * p.value.columns, p.value.columns, at, p.output.column,
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
          few_.dot(query, from, segment.stride, p.key.columns, to, segment.ahead);
          continue;
        }
        for (uint64_t i = 0; i < some; ++i) {
          float same[kFewAtATime];  // of one key
          few_.dot(query, from + i * segment.stride * width_, 0, p.key.columns, same, 0);
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
                 segment.stride, static_cast<uint32_t>(some), p.value.columns, sums + r * p.value.columns,
                 segment.ahead);
      }
    }
  }

  AttentionRowLoops loops_;
  FewRows few_;
  LoadBlock load_;
  uint64_t width_;
  uint64_t rows_;  // queries of a group
  uint32_t workers_;
  uint32_t parts_of_heads_;  // of each batch
  uint64_t head_floats_, worker_floats_;
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
