// Sums, row by row: rows of the source become rows of the target along one dimension and are summed along the
// others. Rows that the target's next row needs again are kept.
#include <algorithm>
#include <array>
#include <vector>

#include "ops/common/nest_parts.h"
#include "ops/numbers/load_store.h"
#include "ops/numbers/row_arithmetic.h"
#include "ops/resample/cpu/axis_table.h"
#include "ops/resample/cpu/target_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kLongestRow = 1 << 15;
constexpr uint64_t kLongestTable = 1 << 20;
constexpr uint64_t kMostTaps = 1 << 24;
constexpr uint32_t kKeptRows = 4;

// Of one dimension, approximately.
uint64_t MostTaps(const ResampleAxis& axis) {
  const bool triangle = axis.rule == ResampleRule::kTriangle;
  const float reach = triangle ? 1 / axis.scale : 1;
  const float each = std::min(2 * reach + 1, static_cast<float>(axis.from));
  return static_cast<uint64_t>(each) * axis.to;
}

class ResampleRows final : public Kernel {
 public:
  ResampleRows(const ResampleProblem& problem, const TargetRows& rows, uint32_t threads)
      : type_(problem.type),
        rows_(rows),
        load_(FindLoad(problem.type, Class::kF32)),
        store_(FindStore(Class::kF32, problem.type)),
        tables_(rows.level_count) {
    for (uint32_t l = 0; l < rows.level_count; ++l) {
      tables_[l] = AxisTable(rows.levels[l], problem.gradient);
      if (l != rows.row_level) innermost_ = l;
    }
    if (rows.row_level != TargetRows::kNone) {
      sum_ = RowSum(tables_[rows.row_level], rows.row_width);
      source_length_ = rows.source_length(problem.gradient);
      target_length_ = rows.target_length(problem.gradient);
      longest_ = std::max(source_length_, target_length_);
    } else {
      target_length_ = rows.row.to;
      longest_ = std::min<uint64_t>(target_length_, kLongestRow);
    }
    row_bytes_ = (longest_ * sizeof(float) + 63) / 64 * 64;
    const bool has_level = rows.row_level != TargetRows::kNone;
    uint64_t read = Iterations(rows.batch) * (has_level ? source_length_ : target_length_);
    for (uint32_t l = 0; l < rows.level_count; ++l) {
      if (l != rows.row_level) read *= SourceSize(rows.levels[l], problem.gradient);
    }
    const uint64_t elements = std::max(read, rows.count * target_length_);
    parts_ = static_cast<uint32_t>(
        std::min<uint64_t>(PartsForBytes(elements * BitSize(type_) / 8, threads), rows.count));
  }

  uint64_t temporary_bytes() const override { return parts_ * ScratchRows() * row_bytes_; }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      Walk walk;
      walk.source = arguments.inputs[0].data;
      walk.target = arguments.outputs[0].data;
      walk.scratch = arguments.temporary.data + part * ScratchRows() * row_bytes_;
      walk.keys.fill(~uint64_t{0});
      rows_.ForEach(PartBegin(rows_.count, part, parts_), PartBegin(rows_.count, part + 1, parts_),
                    [&](const TargetRows::Coordinates& at, uint64_t source, uint64_t target) {
                      walk.at = at;
                      RunRow(walk, source, target);
                    });
    });
    return {};
  }

 private:
  // The state of one thread.
  struct Walk {
    const std::byte* source;
    std::byte* target;
    std::byte* scratch;
    TargetRows::Coordinates at;
    uint64_t length;                       // of the target's row
    float* result;                         // where it must be written
    bool is_finished;                      // its NaNs are canonical
    std::array<uint64_t, kKeptRows> keys;  // source offsets of kept rows
    std::array<uint64_t, kKeptRows> used{};
    uint64_t now = 0;
  };

  // Kept rows, one for each level, the source of the row's own level, and the result.
  uint64_t ScratchRows() const { return kKeptRows + rows_.level_count + 2; }
  float* ScratchRow(const Walk& walk, uint64_t number) const {
    return reinterpret_cast<float*>(walk.scratch + number * row_bytes_);
  }

  void RunRow(Walk& walk, uint64_t source, uint64_t target) const {
    // A level's rows have a fixed length; others are cut into pieces.
    const uint64_t step = rows_.row_level != TargetRows::kNone ? target_length_ : longest_;
    for (uint64_t begin = 0; begin < target_length_; begin += step) {
      walk.length = std::min(step, target_length_ - begin);
      const uint64_t to = target + begin * rows_.row.target_stride;
      const bool in_place = type_ == DataType::kFloat32 && rows_.row.target_stride == 1;
      walk.result = in_place ? reinterpret_cast<float*>(walk.target) + to
                             : ScratchRow(walk, kKeptRows + rows_.level_count + 1);
      walk.is_finished = false;
      const float* const found = Evaluate(walk, 0, source + begin * rows_.row.source_stride, walk.result);
      if (type_ == DataType::kInt8 || type_ == DataType::kUInt8) {
        RoundRow(found, walk.result, walk.length);
      } else if (!walk.is_finished) {
        FinishRow(found, walk.result, walk.length);
      }
      if (in_place) continue;
      store_(walk.result,
             Block{.columns = walk.length, .column_stride = rows_.row.target_stride, .offset = to},
             walk.target);
    }
  }

  // Rows from deeper than the row's own level are rows of the source.
  uint64_t LengthAt(const Walk& walk, uint32_t level) const {
    return rows_.row_level != TargetRows::kNone && level > rows_.row_level ? source_length_ : walk.length;
  }

  // The row at `offset` of the source after level `level` and the following ones: in `to`, or elsewhere,
  // where it must not be changed.
  const float* Evaluate(Walk& walk, uint32_t level, uint64_t offset, float* to) const {
    if (level == rows_.level_count) return LoadRow(walk, offset, to);
    if (level == rows_.row_level) {
      const float* const source = Evaluate(walk, level + 1, offset, ScratchRow(walk, kKeptRows + level));
      sum_.Apply(source, to);
      return to;
    }
    const auto taps = tables_[level][walk.at[level]];
    const uint64_t stride = rows_.levels[level].source_stride;
    if (taps.size() == 1 && taps[0].weight == 1)
      return Inner(walk, level, offset + taps[0].index * stride, to);
    const uint64_t length = LengthAt(walk, level);
    if (taps.empty()) {
      std::fill_n(to, length, 0.0f);
    } else if (taps.size() == 2 && level == innermost_) {
      const float* const a = Inner(walk, level, offset + taps[0].index * stride, to);
      const float* const b = Inner(walk, level, offset + taps[1].index * stride, to);
      walk.is_finished = to == walk.result;
      (walk.is_finished ? FinishMixedRows : MixRows)(a, taps[0].weight, b, taps[1].weight, to, length);
    } else {
      float* const row = ScratchRow(walk, kKeptRows + level);
      ScaleRow(Inner(walk, level, offset + taps[0].index * stride, row), taps[0].weight, to, length);
      for (const WeightedTap& tap : taps.subspan(1)) {
        AddScaledRow(Inner(walk, level, offset + tap.index * stride, row), tap.weight, to, length);
      }
    }
    return to;
  }

  // The rows that a level sums. The innermost one's are kept, since they depend only on the offset.
  const float* Inner(Walk& walk, uint32_t level, uint64_t offset, float* to) const {
    const bool is_direct = level + 1 == rows_.level_count && Direct();
    if (level != innermost_ || is_direct) return Evaluate(walk, level + 1, offset, to);
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < kKeptRows; ++i) {
      if (walk.keys[i] == offset) {
        walk.used[i] = ++walk.now;
        return ScratchRow(walk, i);
      }
      if (walk.used[i] < walk.used[oldest]) oldest = i;
    }
    walk.keys[oldest] = offset;
    walk.used[oldest] = ++walk.now;
    float* const kept = ScratchRow(walk, oldest);
    const float* const found = Evaluate(walk, level + 1, offset, kept);
    if (found != kept) std::copy_n(found, LengthAt(walk, level), kept);
    return kept;
  }

  // Whether rows of the source can be read directly.
  bool Direct() const { return type_ == DataType::kFloat32 && rows_.row.source_stride == 1; }

  const float* LoadRow(const Walk& walk, uint64_t offset, float* to) const {
    if (Direct()) return reinterpret_cast<const float*>(walk.source) + offset;
    const uint64_t length = LengthAt(walk, rows_.level_count);
    load_(walk.source, Block{.columns = length, .column_stride = rows_.row.source_stride, .offset = offset},
          to);
    return to;
  }

  DataType type_;
  TargetRows rows_;
  LoadBlock load_;
  StoreBlock store_;
  std::vector<AxisTable> tables_;
  uint32_t innermost_ = TargetRows::kNone;  // of the levels other than the row's
  RowSum sum_;
  uint64_t source_length_ = 0;  // if the row has a level
  uint64_t target_length_ = 1;
  uint64_t longest_ = 1;
  uint64_t row_bytes_ = 0;
  uint32_t parts_ = 1;
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleRows(const ResampleProblem& problem, const LowerContext& context,
                                                 std::string* why_not) {
  if (IsNearest(problem)) {
    *why_not = "elements are only moved";
    return nullptr;
  }
  const TargetRows rows(problem);
  for (uint32_t l = 0; l < rows.level_count; ++l) {
    const uint64_t longest = std::max(rows.levels[l].from, rows.levels[l].to);
    const uint64_t most = l == rows.row_level ? kLongestRow : kLongestTable;
    if (longest > most || MostTaps(rows.levels[l]) > kMostTaps) {
      *why_not = StrCat("a dimension of ", longest, " elements would need too large a table");
      return nullptr;
    }
  }
  return std::make_unique<ResampleRows>(problem, rows, context.threads);
}

}  // namespace anydml
