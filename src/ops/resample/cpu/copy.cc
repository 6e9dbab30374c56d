// Nearest elements: rows of the source are copied, or their elements are repeated or skipped. A row that
// equals the previous one is copied from that.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/dispatch.h"
#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/resample/cpu/target_rows.h"

namespace anydml {
namespace {

class ResampleCopy final : public Kernel {
 public:
  ResampleCopy(const ResampleProblem& problem, uint32_t threads)
      : type_(problem.type), rows_(problem), indices_(rows_.level_count) {
    for (uint32_t l = 0; l < rows_.level_count; ++l) {
      const ResampleAxis& axis = rows_.levels[l];
      if (axis.to > kLongestTable) continue;
      for (uint32_t i = 0; i < axis.to; ++i) indices_[l].push_back(NearestIndex(axis, i));
    }
    if (rows_.row_level != TargetRows::kNone && HasTable(rows_.row_level)) {
      doubles_ = rows_.row.source_stride == 1 && rows_.row.target_stride == 1 && rows_.row.to % 2 == 0 &&
                 rows_.row_width == 1;
      const std::vector<uint32_t>& row = indices_[rows_.row_level];
      for (uint32_t i = 0; doubles_ && i < rows_.row.to; ++i) doubles_ = row[i] == i / 2;
    }
    length_ = rows_.target_length(false);
    const uint64_t bytes = rows_.count * length_ * BitSize(type_) / 8;
    streams_ = StreamsResults(bytes) && RowsAreLines();
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(PartsForBytes(bytes, threads), rows_.count));
  }

  Status Run(const KernelArguments& arguments) const override {
    DispatchByWidth(type_, [&]<typename T>() {
      const auto* const source = reinterpret_cast<const T*>(arguments.inputs[0].data);
      auto* const target = reinterpret_cast<T*>(arguments.outputs[0].data);
      ParallelFor(arguments.executor, parts_, [&](uint32_t part) { RunPart(part, source, target); });
    });
    return {};
  }

 private:
  // Longer tables would take more memory than they are worth.
  static constexpr uint32_t kLongestTable = 1 << 20;
  static constexpr uint64_t kLongestRow = 16 << 10;  // bytes of a row that is assembled in a cache
  bool HasTable(uint32_t level) const { return !indices_[level].empty(); }

  // Whether rows fit into a cache and are whole cache lines if the target begins with one, so that none is
  // written partially.
  bool RowsAreLines() const {
    const auto bytes = [&](uint64_t elements) { return elements * BitSize(type_) / 8; };
    bool result = rows_.row.target_stride == 1 && bytes(length_) <= kLongestRow && bytes(length_) % 64 == 0;
    for (uint32_t l = 0; l < rows_.level_count; ++l) {
      result = result && (rows_.sizes[l] == 1 || bytes(rows_.levels[l].target_stride) % 64 == 0);
    }
    for (uint32_t d = 0; d < rows_.batch.rank; ++d) {
      result = result && bytes(rows_.batch.loops[d].strides[1]) % 64 == 0;
    }
    return result;
  }

  template <typename T>
  void RunPart(uint32_t part, const T* source, T* target) const {
    const T* last_from = nullptr;
    const T* last_to = nullptr;
    const bool streams = streams_ && reinterpret_cast<uintptr_t>(target) % 64 == 0;
    alignas(64) T row[kLongestRow / sizeof(T)];  // if results are streamed
    rows_.ForEach(PartBegin(rows_.count, part, parts_), PartBegin(rows_.count, part + 1, parts_),
                  [&](const TargetRows::Coordinates& at, uint64_t from, uint64_t to) {
                    for (uint32_t l = 0; l < rows_.level_count; ++l) {
                      if (l == rows_.row_level) continue;
                      const ResampleAxis& axis = rows_.levels[l];
                      const uint32_t index = HasTable(l) ? indices_[l][at[l]] : NearestIndex(axis, at[l]);
                      from += uint64_t{index} * axis.source_stride;
                    }
                    if (streams) {
                      if (source + from != last_from) CopyRow(source + from, row);
                      StreamCopy(reinterpret_cast<std::byte*>(target + to),
                                 reinterpret_cast<const std::byte*>(row), length_ * sizeof(T));
                    } else if (source + from == last_from && rows_.row.target_stride == 1) {
                      std::memcpy(target + to, last_to, length_ * sizeof(T));
                    } else {
                      CopyRow(source + from, target + to);
                    }
                    last_from = source + from;
                    last_to = target + to;
                  });
    if (streams) EndStream();
  }

  template <typename T>
  void CopyRow(const T* from, T* to) const {
    const uint64_t from_stride = rows_.row.source_stride, to_stride = rows_.row.target_stride;
    if (rows_.row_level == TargetRows::kNone) {
      if (from_stride == 1 && to_stride == 1) {
        std::memcpy(to, from, length_ * sizeof(T));
      } else {
        for (uint64_t i = 0; i < length_; ++i) to[i * to_stride] = from[i * from_stride];
      }
    } else if (doubles_) {
      for (uint64_t i = 0; i < rows_.row.to / 2; ++i) to[2 * i] = to[2 * i + 1] = from[i];
    } else if (!HasTable(rows_.row_level)) {
      for (uint32_t i = 0; i < rows_.row.to; ++i) {
        to[i * to_stride] = from[NearestIndex(rows_.row, i) * from_stride];
      }
    } else if (rows_.row_width > 1) {
      const uint64_t width = rows_.row_width;
      for (const uint32_t index : indices_[rows_.row_level]) {
        for (uint64_t i = 0; i < width; ++i) to[i] = from[index * width + i];
        to += width;
      }
    } else {
      const uint32_t* const indices = indices_[rows_.row_level].data();
      for (uint64_t i = 0; i < rows_.row.to; ++i) to[i * to_stride] = from[indices[i] * from_stride];
    }
  }

  DataType type_;
  TargetRows rows_;
  std::vector<std::vector<uint32_t>>
      indices_;           // in the source, for every number of a level that is not too long
  bool doubles_ = false;  // rows repeat every element once
  bool streams_ = false;  // non-temporally, row by row, if the target begins with a cache line
  uint64_t length_ = 1;   // of a row of the target
  uint32_t parts_ = 1;
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleCopy(const ResampleProblem& problem, const LowerContext& context,
                                                 std::string* why_not) {
  if (!IsNearest(problem)) {
    *why_not = "elements are added up";
    return nullptr;
  }
  return std::make_unique<ResampleCopy>(problem, context.threads);
}

}  // namespace anydml
