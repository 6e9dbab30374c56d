// A few queries per key head, as when tokens are generated one by one: keys and values are read once, in
// place.
#include <algorithm>

#include "ops/attention/cpu/row_loops.h"
#include "ops/common/nest_parts.h"
#include "ops/product/few_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kMostQueries = 8;
// The keys that all heads of a part process before the next ones: heads are usually side by side, so memory
// is read sequentially. A multiple of kFewAtATime.
constexpr uint64_t kKeysAtATime = 16;
// Keys are cut into up to this many chunks, whose sums are added one after the other. Threads share chunks,
// not heads: heads are pieces of the same rows, so that one thread's hardware prefetch would fetch what
// another needs. Long chunks would lose digits in their sums.
constexpr uint64_t kChunks = 16, kMostChunkKeys = 1024;

// Consecutive rows of a head.
struct Segment {
  const std::byte* data;
  uint64_t stride;  // from row to row, in elements
  uint64_t first;   // index among all keys
  uint64_t rows;
  uint64_t ahead;  // distance in elements to the rows to prefetch; 0: unknown
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
    const uint64_t columns = problem.key.columns + problem.value.columns, heads = problem.KeyHeads();
    chunk_keys_ = (problem.keys + kChunks * kKeysAtATime - 1) / (kChunks * kKeysAtATime) * kKeysAtATime;
    chunk_keys_ = std::min(chunk_keys_, kMostChunkKeys);
    chunks_ = (problem.keys + chunk_keys_ - 1) / chunk_keys_;
    workers_ = PartsForBytes(problem.batch * heads * problem.keys * columns * width_, threads);
    // Otherwise at least two batches per worker, since their speeds differ.
    shares_chunks_ = problem.batch < 2 * workers_;
    workers_ = static_cast<uint32_t>(
        std::min<uint64_t>(workers_, shares_chunks_ ? std::max(chunks_, heads) : problem.batch));
    sums_floats_ = heads * rows_ * problem.value.columns;
    batch_floats_ = heads * rows_ * (problem.keys + problem.key.columns) + chunks_ * sums_floats_;
    scratch_ = AddScratch("rows", (shares_chunks_ ? 1 : workers_) * batch_floats_ * sizeof(float));
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    float* const scratch = scratch_.In<float>(arguments.temporary);
    if (shares_chunks_) {
      for (uint64_t batch = 0; batch < problem().batch; ++batch) {
        RunBatch(batch, arguments, arguments.executor, scratch);
      }
      return {};
    }
    ForParts(arguments.executor, problem().batch, [&](uint64_t batch, uint32_t worker) {
      RunBatch(batch, arguments, nullptr, scratch + worker * batch_floats_);
    });
    return {};
  }

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    loops_.Join(join, memory, arguments.executor);
  }

  // The head of row r of a group.
  uint64_t HeadOf(uint64_t key_head, uint64_t r) const {
    return key_head * problem().group + r / problem().queries;
  }
  uint64_t QueryOf(uint64_t r) const { return r % problem().queries; }

  // Calls body(part, worker).
  template <typename Body>
  void ForParts(Executor* executor, uint64_t parts, const Body& body) const {
    const auto workers = static_cast<uint32_t>(std::min<uint64_t>(parts, executor == nullptr ? 1 : workers_));
    SharedParts shared(parts, workers);
    ParallelFor(executor, workers, [&](uint32_t worker) {
      for (uint64_t part; shared.Take(worker, &part);) body(part, worker);
    });
  }

  // For all key heads of a batch, one after the other; sums of all chunks.
  struct Scratch {
    float* queries;
    float* logits;
    float* sums;
  };

  // Calls body(segment, head) for a block of keys of each head, from `begin` to `end`, then for the next
  // block: rows of the past, then new ones.
  template <typename Body>
  void ForSegments(const AttentionJoin& join, const int32_t* lengths, uint64_t batch, uint64_t begin,
                   uint64_t end, const KernelArguments& arguments, const Body& body) const {
    const uint64_t past = join.lengths.exists ? join.lengths.Of(lengths, batch) : join.past;
    // `before`: keys before the first row of the view.
    const auto segments = [&](std::span<const Buffer> buffers, const AttentionView& view, uint64_t before,
                              uint64_t first, uint64_t last) {
      const std::byte* const data = buffers[view.binding].data;
      for (uint64_t key = first; key < last; key += kKeysAtATime) {
        for (uint64_t head = 0; head < problem().KeyHeads(); ++head) {
          body(Segment{data + view.At(batch, head, key - before) * width_, view.row, key,
                       std::min(kKeysAtATime, last - key), Ahead(view, join.columns, head)},
               head);
        }
      }
    };
    if (begin < past) {
      segments(join.lengths.exists ? arguments.outputs : arguments.inputs, join.past_view, 0, begin,
               std::min(past, end));
    }
    if (past < end) segments(arguments.inputs, join.fresh_view, past, std::max(past, begin), end);
  }

  // The prefetch distance from rows of a head, if heads are side by side: to another head's rows, or to the
  // next keys'.
  uint64_t Ahead(const AttentionView& view, uint64_t columns, uint64_t head) const {
    constexpr uint64_t kBytes = 1024;
    if (view.head != columns) return 0;
    const uint64_t at = head * columns, then = at + kBytes / width_, all = problem().KeyHeads() * columns;
    return then / all * kKeysAtATime * view.row + then % all - at;
  }

  void RunBatch(uint64_t batch, const KernelArguments& arguments, Executor* executor, float* memory) const {
    const AttentionProblem& p = problem();
    const AttentionWeightsMemory of_weights = WeightsMemory(arguments);
    const uint64_t heads = p.KeyHeads(), query_floats = rows_ * p.key.columns, logits_floats = rows_ * p.keys;
    const Scratch scratch = {memory, memory + heads * query_floats,
                             memory + heads * (query_floats + logits_floats)};
    // The last query sees the most keys.
    const uint64_t keys = KeysOf(weights(), of_weights.lengths, batch, p.queries - 1);
    const uint64_t chunks = (keys + chunk_keys_ - 1) / chunk_keys_;
    for (uint64_t head = 0; head < heads; ++head) {
      LoadQueries(batch, head, arguments, scratch.queries + head * query_floats);
    }
    const auto for_chunk = [&](const AttentionJoin& join, uint64_t chunk, const auto& body) {
      ForSegments(join, of_weights.lengths, batch, chunk * chunk_keys_,
                  std::min(keys, (chunk + 1) * chunk_keys_), arguments, body);
    };
    ForParts(executor, chunks, [&](uint64_t chunk, uint32_t) {
      for_chunk(key().join, chunk, [&](const Segment& segment, uint64_t head) {
        Multiply(segment, scratch.queries + head * query_floats, scratch.logits + head * logits_floats);
      });
    });
    ForParts(executor, heads, [&](uint64_t head, uint32_t) {
      for (uint64_t r = 0; r < rows_; ++r) {
        loops_.Weigh(weights(), of_weights, batch, HeadOf(head, r), QueryOf(r), p.scale, keys,
                     scratch.logits + head * logits_floats + r * p.keys);
      }
    });
    ForParts(executor, chunks, [&](uint64_t chunk, uint32_t) {
      float* const sums = scratch.sums + chunk * sums_floats_;
      std::fill_n(sums, sums_floats_, 0.0f);
      for_chunk(value().join, chunk, [&](const Segment& segment, uint64_t head) {
        AddUp(segment, scratch.logits + head * logits_floats, of_weights.lengths, batch,
              sums + head * rows_ * p.value.columns);
      });
    });
    if (chunks == 0) std::fill_n(scratch.sums, sums_floats_, 0.0f);
    for (uint64_t chunk = 1; chunk < chunks; ++chunk) {
      const float* const more = scratch.sums + chunk * sums_floats_;
      for (uint64_t i = 0; i < sums_floats_; ++i) scratch.sums[i] += more[i];
    }
    for (uint64_t head = 0; head < heads; ++head) {
      StoreSums(batch, head, scratch.sums + head * rows_ * p.value.columns, arguments);
    }
  }

  void LoadQueries(uint64_t batch, uint64_t head, const KernelArguments& arguments, float* to) const {
    const AttentionProblem& p = problem();
    for (uint64_t r = 0; r < rows_; ++r) {
      const Block block = {.columns = p.key.columns,
                           .column_stride = p.query.column,
                           .offset = p.query.At(batch, HeadOf(head, r), QueryOf(r))};
      load_(arguments.inputs[p.query.binding].data, block, to + r * p.key.columns);
    }
  }

  void StoreSums(uint64_t batch, uint64_t head, float* sums, const KernelArguments& arguments) const {
    const AttentionProblem& p = problem();
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

  // Values of keys that a query does not see are not read.
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
  uint64_t rows_;  // queries per group
  uint32_t workers_;
  bool shares_chunks_;  // otherwise whole batches
  uint64_t chunk_keys_, chunks_;
  uint64_t sums_floats_, batch_floats_;  // per chunk, and of all chunks
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
