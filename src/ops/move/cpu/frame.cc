// PADDING with a constant, where the output has no gaps: its rows are put together in a cache and written one
// behind the other. (As copies, the thin slabs around the input would write parts of lines, before or after
// the rest of them.)
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "ops/common/dispatch.h"
#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/move/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

constexpr uint64_t kLineBytes = 64, kLongestRowBytes = 4 << 10;
// What is collected before it is written: little, so that the next rows are put together while lines are on
// their way to memory, and a row with what is left of a line in any case.
constexpr uint64_t kWrittenBytes = 1 << 10, kBufferBytes = kWrittenBytes + kLongestRowBytes + kLineBytes;

// Of the output. Where `at - start` is below `inner` there is an element of the input.
struct PaddedLoop {
  uint64_t size = 1;
  uint64_t inner = 1;
  uint64_t start = 0;
  uint64_t stride = 0;  // in the input
};

// Dimensions from the outermost; those without a frame that continue the one around them are one with it.
template <typename Desc>
std::vector<PaddedLoop> PaddedLoopsOf(const Desc& desc) {
  std::vector<PaddedLoop> loops;
  for (uint32_t d = 0; d < desc.output.rank; ++d) {
    const uint64_t size = desc.output.sizes[d], inner = desc.input.sizes[d], stride = desc.input.strides[d];
    if (size == 1) continue;
    if (!loops.empty() && size == inner && loops.back().stride == inner * stride) {
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

// Collects bytes that belong one behind the other, and writes them in whole lines.
class LineWriter {
 public:
  LineWriter(std::byte* to, bool streams) : to_(to), streams_(streams) {}

  // Room for `bytes`, at most kLongestRowBytes, which the caller fills.
  std::byte* Next(uint64_t bytes) {
    if (filled_ >= kWrittenBytes) Write(filled_ - reinterpret_cast<uintptr_t>(to_ + filled_) % kLineBytes);
    filled_ += bytes;
    return buffer_.data() + filled_ - bytes;
  }

  void Finish() {
    Write(filled_);
    if (streams_) EndStream();
  }

 private:
  void Write(uint64_t bytes) {
    streams_ ? StreamCopy(to_, buffer_.data(), bytes) : void(std::memcpy(to_, buffer_.data(), bytes));
    std::memmove(buffer_.data(), buffer_.data() + bytes, filled_ - bytes);
    to_ += bytes;
    filled_ -= bytes;
  }

  alignas(kLineBytes) std::array<std::byte, kBufferBytes> buffer_;
  std::byte* to_;
  uint64_t filled_ = 0;
  bool streams_;
};

class FrameCpu final : public Kernel {
 public:
  FrameCpu(const MoveProblem& problem, std::vector<PaddedLoop> loops, uint32_t threads)
      : type_(problem.type), fill_(problem.fill), row_(loops.back()), loops_(std::move(loops)) {
    loops_.pop_back();
    for (const PaddedLoop& loop : loops_) rows_ *= loop.size;
    const uint64_t bytes = rows_ * row_.size * (BitSize(type_) / 8);
    streams_ = StreamsResults(bytes);
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(PartsForBytes(bytes, threads), rows_));
  }

  Status Run(const KernelArguments& arguments) const override {
    DispatchByWidth(type_, [&]<typename T>() {
      const auto* const from = reinterpret_cast<const T*>(arguments.inputs[0].data);
      auto* const to = reinterpret_cast<T*>(arguments.outputs[0].data);
      ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
        WriteRows(from, to, PartBegin(rows_, part, parts_), PartBegin(rows_, part + 1, parts_));
      });
    });
    return {};
  }

 private:
  // The place of an output's row among the loops around rows.
  using Place = std::array<uint64_t, kMaxDimensions>;

  Place PlaceOf(uint64_t row) const {
    Place place{};
    for (size_t d = loops_.size(); d-- > 0; row /= loops_[d].size) place[d] = row % loops_[d].size;
    return place;
  }

  void Advance(Place* place) const {
    for (size_t d = loops_.size(); d-- > 0;) {
      if (++(*place)[d] < loops_[d].size) return;
      (*place)[d] = 0;
    }
  }

  template <typename T>
  void WriteRows(const T* from, T* to, uint64_t begin, uint64_t end) const {
    const T fill = static_cast<T>(fill_);
    LineWriter writer(reinterpret_cast<std::byte*>(to + begin * row_.size), streams_);
    Place place = PlaceOf(begin);
    for (uint64_t row = begin; row < end; ++row, Advance(&place)) {
      uint64_t offset = 0;
      bool is_inside = true;
      for (size_t d = 0; d < loops_.size(); ++d) {
        const uint64_t inner = place[d] - loops_[d].start;
        is_inside = is_inside && inner < loops_[d].inner;
        offset += inner * loops_[d].stride;
      }
      T* const target = reinterpret_cast<T*>(writer.Next(row_.size * sizeof(T)));
      if (!is_inside) {
        std::fill_n(target, row_.size, fill);
        continue;
      }
      std::fill_n(target, row_.start, fill);
      std::memcpy(target + row_.start, from + offset, row_.inner * sizeof(T));
      std::fill_n(target + row_.start + row_.inner, row_.size - row_.start - row_.inner, fill);
    }
    writer.Finish();
  }

  DataType type_;
  uint64_t fill_;
  PaddedLoop row_;
  std::vector<PaddedLoop> loops_;  // around rows
  uint64_t rows_ = 1;
  uint32_t parts_ = 1;
  bool streams_ = false;  // past the caches
};

template <typename Desc>
std::unique_ptr<const Kernel> CreateFrameOf(const MoveProblem& problem, const Desc& desc, uint32_t threads,
                                            std::string* why_not) {
  if (desc.padding_mode != PaddingMode::kConstant) {
    *why_not = "the padding is no constant";
    return nullptr;
  }
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
  return std::make_unique<FrameCpu>(problem, std::move(loops), threads);
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
