// PADDING with a contiguous output: its rows are written sequentially. (As separate copies, the thin slabs
// around the input would write partial cache lines.)
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/dispatch.h"
#include "ops/common/nest_parts.h"
#include "ops/move/border_maps.h"
#include "ops/move/cpu/framed_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kLongestRowBytes = 4 << 10;
// Size of rows for which assembling whole cache lines costs little.
constexpr uint64_t kShortestStreamed = 256;
// Elements before and after a row, which are copied one by one unless they are constant.
constexpr uint64_t kMostBorder = 16;
// Rows whose places are computed before they are written.
constexpr uint64_t kRowsAtOnce = 64;

// A loop of the output. If `at - start` is below `inner`, there is an element of the input.
struct PaddedLoop {
  uint64_t size = 1;
  uint64_t inner = 1;
  uint64_t start = 0;
  uint64_t stride = 0;  // in the input

  uint64_t end() const { return size - start - inner; }
};

// Dimensions from the outermost. A dimension without a frame that continues the enclosing one is merged with
// it; the result has a frame only if that is constant.
template <typename Desc>
std::vector<PaddedLoop> PaddedLoopsOf(const Desc& desc) {
  const bool is_constant = desc.padding_mode == PaddingMode::kConstant;
  std::vector<PaddedLoop> loops;
  for (uint32_t d = 0; d < desc.output.rank; ++d) {
    const uint64_t size = desc.output.sizes[d], inner = desc.input.sizes[d], stride = desc.input.strides[d];
    if (size == 1) continue;
    const bool joins =
        !loops.empty() && (is_constant || loops.back().size == loops.back().inner) && size == inner;
    if (joins && loops.back().stride == inner * stride) {
      PaddedLoop& last = loops.back();
      last = {last.size * size, last.inner * inner, last.start * size, stride};
    } else {
      loops.push_back({size, inner, desc.start_padding[d], stride});
    }
  }
  return loops;
}

bool HasNoGaps(const TensorDesc& tensor) {
  uint64_t expected = 1;
  for (uint32_t d = tensor.rank; d-- > 0; expected *= tensor.sizes[d]) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected) return false;
  }
  return true;
}

class FrameCpu final : public Kernel {
 public:
  FrameCpu(const MoveProblem& problem, PaddingMode mode, std::vector<PaddedLoop> loops, uint64_t input_bytes,
           uint32_t threads)
      : mode_(mode),
        type_(problem.type),
        width_(BitSize(problem.type) / 8),
        input_bytes_(input_bytes),
        loops_(std::move(loops)) {
    const PaddedLoop row = loops_.back();
    loops_.pop_back();
    for (const PaddedLoop& loop : loops_) rows_ *= loop.size;
    row_ = {.width = width_, .inner = row.inner, .before = row.start, .behind = row.end()};
    row_.is_constant = mode_ == PaddingMode::kConstant;
    DispatchByWidth(problem.type, [&]<typename T>() { row_.fill = Repeated(static_cast<T>(problem.fill)); });
    if (!row_.is_constant) {
      const auto size = static_cast<int64_t>(row.inner);
      for (auto i = -static_cast<int64_t>(row.start); i < 0; ++i) before_.push_back(OffsetAt(i, size));
      for (uint64_t i = 0; i < row.end(); ++i)
        behind_.push_back(OffsetAt(size + static_cast<int64_t>(i), size));
    }
    row_.before_from = before_;
    row_.behind_from = behind_;
    row_bytes_ = row.size * width_;
    const uint64_t bytes = rows_ * row_bytes_;
    streams_ = StreamsResults(bytes) && row_bytes_ >= kShortestStreamed;
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(PartsForBytes(bytes, threads), rows_));
  }

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* const from = arguments.inputs[0].data;
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t begin = PartBegin(rows_, part, parts_), end = PartBegin(rows_, part + 1, parts_);
      std::byte* const to = arguments.outputs[0].data + begin * row_bytes_;
      if (streams_) {
        WriteLines(LineWriter(to, from, from + input_bytes_), from, begin, end);
      } else {
        DispatchByWidth(type_, [&]<typename T>() { WriteRows<T>(ByteWriter(to), from, begin, end); });
      }
    });
    return {};
  }

 private:
  // The row to be written: its index in the loops around rows, and its place in the input along each, or
  // nowhere.
  struct Place {
    std::array<uint64_t, kMaxDimensions> at{};
    std::array<uint64_t, kMaxDimensions> offsets{};
  };
  static constexpr uint64_t kNowhere = ~uint64_t{0};

  uint64_t OffsetAt(int64_t i, int64_t size) const {
    return static_cast<uint64_t>(PaddedCoordinate(mode_, i, size)) * width_;
  }

  void FindOffset(size_t d, Place* place) const {
    const PaddedLoop& loop = loops_[d];
    uint64_t i = place->at[d] - loop.start;
    if (i >= loop.inner) {
      if (mode_ == PaddingMode::kConstant) {
        place->offsets[d] = kNowhere;
        return;
      }
      i = static_cast<uint64_t>(
          PaddedCoordinate(mode_, static_cast<int64_t>(i), static_cast<int64_t>(loop.inner)));
    }
    place->offsets[d] = i * loop.stride * width_;
  }

  Place PlaceOf(uint64_t row) const {
    Place place;
    for (size_t d = loops_.size(); d-- > 0; row /= loops_[d].size) {
      place.at[d] = row % loops_[d].size;
      FindOffset(d, &place);
    }
    return place;
  }

  void Advance(Place* place) const {
    for (size_t d = loops_.size(); d-- > 0;) {
      const bool is_over = ++place->at[d] == loops_[d].size;
      if (is_over) place->at[d] = 0;
      FindOffset(d, place);
      if (!is_over) return;
    }
  }

  // The row's offset in the input.
  uint64_t OffsetOf(const Place& place) const {
    uint64_t offset = 0;
    for (size_t d = 0; d < loops_.size(); ++d) {
      if (place.offsets[d] == kNowhere) return kNowhere;
      offset += place.offsets[d];
    }
    return offset;
  }

  // The row's address in the input; null: nowhere.
  const std::byte* RowAt(const Place& place, const std::byte* from) const {
    const uint64_t offset = OffsetOf(place);
    return offset == kNowhere ? nullptr : from + offset;
  }

  // (Not inline: the instances for all types in one function would need too many registers.)
  template <typename T>
  __attribute__((noinline)) void WriteRows(ByteWriter writer, const std::byte* from, uint64_t begin,
                                           uint64_t end) const {
    Place place = PlaceOf(begin);
    const FramedRow frame = row_;  // a copy, because stores might alias the member as far as the compiler
                                   // knows
    for (uint64_t row = begin; row < end; ++row, Advance(&place)) {
      AppendFramed<T>(frame, RowAt(place, from), writer);
    }
  }

  void WriteLines(LineWriter writer, const std::byte* from, uint64_t begin, uint64_t end) const {
    Place place = PlaceOf(begin);
    std::array<const std::byte*, kRowsAtOnce> rows;
    for (uint64_t count; begin < end; begin += count) {
      count = std::min(kRowsAtOnce, end - begin);
      for (uint64_t i = 0; i < count; ++i, Advance(&place)) rows[i] = RowAt(place, from);
      AppendRows(row_, {rows.data(), count}, &writer);
    }
    writer.Finish();
  }

  PaddingMode mode_;
  DataType type_;
  uint32_t width_;  // of an element
  uint64_t input_bytes_;
  FramedRow row_;
  std::vector<uint64_t> before_, behind_;  // the offsets for row_
  uint64_t row_bytes_ = 0;                 // of the output
  std::vector<PaddedLoop> loops_;          // around rows
  uint64_t rows_ = 1;
  uint32_t parts_ = 1;
  bool streams_ = false;  // with non-temporal stores
};

template <typename Desc>
std::unique_ptr<const Kernel> CreateFrameOf(const MoveProblem& problem, const Desc& desc, uint32_t threads,
                                            std::string* why_not) {
  if (!HasNoGaps(desc.output)) {
    *why_not = "the output has gaps";
    return nullptr;
  }
  std::vector<PaddedLoop> loops = PaddedLoopsOf(desc);
  const uint64_t row_bytes = loops.empty() ? 0 : loops.back().size * (BitSize(problem.type) / 8);
  if (row_bytes < kLineBytes || row_bytes > kLongestRowBytes) {
    *why_not = StrCat("rows have ", row_bytes, " bytes, not ", kLineBytes, " to ", kLongestRowBytes);
    return nullptr;
  }
  if (loops.back().stride != 1) {
    *why_not = "neighbours in the output are no neighbours in the input";
    return nullptr;
  }
  if (desc.padding_mode != PaddingMode::kConstant &&
      std::max(loops.back().start, loops.back().end()) > kMostBorder) {
    *why_not = StrCat("more than ", kMostBorder, " elements of a row's border, which are no constant");
    return nullptr;
  }
  return std::make_unique<FrameCpu>(problem, desc.padding_mode, std::move(loops),
                                    ElementSpan(desc.input) * (BitSize(problem.type) / 8), threads);
}

}  // namespace

std::unique_ptr<const Kernel> CreateFrameCpu(const MoveProblem& problem, const LowerContext& context,
                                             std::string* why_not) {
  switch (static_cast<OperatorType>(problem.desc.schema->type)) {
    case OperatorType::kPadding:
      return CreateFrameOf(problem, PaddingDesc::From(problem.desc), context.threads, why_not);
    case OperatorType::kPadding1:
      return CreateFrameOf(problem, Padding1Desc::From(problem.desc), context.threads, why_not);
    default:
      *why_not = "nothing is padded";
      return nullptr;
  }
}

}  // namespace anydml
