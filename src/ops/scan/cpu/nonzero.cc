#include <algorithm>
#include <vector>

#include "base/dispatch.h"
#include "kernel/scratch_layout.h"
#include "ops/common/nest_parts.h"
#include "ops/scan/nonzero.h"

namespace anydml {
namespace {

// Counts the parts' elements, then writes their coordinates, each part after the previous one's.
template <typename Element>
class NonzeroCpu final : public Kernel {
 public:
  NonzeroCpu(const NonzeroProblem& problem, uint32_t threads)
      : mask_(static_cast<Element>(NonzeroMask(problem.input.type))),
        columns_(ColumnsOf(problem)),
        count_(ElementCount(problem.input)) {
    for (uint32_t d = 0; d < problem.input.rank; ++d) {
      rows_.Append(problem.input.sizes[d], {problem.input.strides[d]});
    }
    inner_ = TakeInnermost(&rows_);
    parts_ = PartsForBytes(count_ * sizeof(Element), threads);
    // A part is a range of element indices; none is empty.
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(parts_, count_));
    counts_ = layout_.Add("counts", uint64_t{parts_} * sizeof(uint32_t));
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    const auto* const input = reinterpret_cast<const Element*>(arguments.inputs[0].data);
    auto* const counts = counts_.In<uint32_t>(arguments.temporary);
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) { counts[part] = CountPart(part, input); });
    uint32_t before = 0;
    for (uint32_t part = 0; part < parts_; ++part) {
      const uint32_t own = counts[part];
      counts[part] = before;
      before += own;
    }
    auto* const coordinates = reinterpret_cast<uint32_t*>(arguments.outputs[1].data);
    ParallelFor(arguments.executor, parts_,
                [&](uint32_t part) { WritePart(part, counts[part], input, coordinates); });
    *reinterpret_cast<uint32_t*>(arguments.outputs[0].data) = before;
    return {};
  }

 private:
  // Calls body(index of the first element, its place, count) for the pieces of a part's rows.
  template <typename Body>
  void ForPieces(uint32_t part, Body&& body) const {
    const uint64_t end = PartBegin(count_, part + 1, parts_);
    for (uint64_t number = PartBegin(count_, part, parts_); number < end;) {
      const uint64_t row = number / inner_.size, column = number % inner_.size;
      const uint64_t count = std::min(inner_.size - column, end - number);
      body(number, OffsetsOf(rows_, row)[0] + column * inner_.strides[0], count);
      number += count;
    }
  }

  uint32_t CountPart(uint32_t part, const Element* input) const {
    uint32_t total = 0;
    ForPieces(part, [&](uint64_t, uint64_t offset, uint64_t count) {
      const Element* const from = input + offset;
      const uint64_t stride = inner_.strides[0];
      uint32_t own = 0;
      if (stride == 1) {
        for (uint64_t i = 0; i < count; ++i) own += (from[i] & mask_) != 0 ? 1 : 0;
      } else {
        for (uint64_t i = 0; i < count; ++i) own += (from[i * stride] & mask_) != 0 ? 1 : 0;
      }
      total += own;
    });
    return total;
  }

  void WritePart(uint32_t part, uint32_t row, const Element* input, uint32_t* coordinates) const {
    const uint32_t last = columns_.count - 1;
    ForPieces(part, [&](uint64_t number, uint64_t offset, uint64_t count) {
      uint32_t at[kMaxDimensions];
      for (uint32_t c = columns_.count; c-- > 0; number /= columns_.sizes[c]) {
        at[c] = static_cast<uint32_t>(number % columns_.sizes[c]);
      }
      for (uint64_t i = 0; i < count; ++i) {
        if ((input[offset + i * inner_.strides[0]] & mask_) != 0) {
          uint32_t* const to = coordinates + row++ * columns_.row_stride;
          for (uint32_t c = 0; c <= last; ++c) to[c * columns_.column_stride] = at[c];
        }
        uint32_t c = last;
        while (++at[c] == columns_.sizes[c] && c > 0) at[c--] = 0;
      }
    });
  }

  Element mask_;
  NonzeroColumns columns_;
  uint64_t count_;
  LoopNest<1> rows_;
  LoopNest<1>::Loop inner_;
  uint32_t parts_;
  ScratchLayout layout_;
  ScratchLayout::Piece counts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateNonzeroCpu(const NonzeroProblem& problem, const LowerContext& context,
                                               std::string*) {
  switch (BitSize(problem.input.type)) {
    case 8:
      return std::make_unique<NonzeroCpu<uint8_t>>(problem, context.threads);
    case 16:
      return std::make_unique<NonzeroCpu<uint16_t>>(problem, context.threads);
    default:
      return std::make_unique<NonzeroCpu<uint32_t>>(problem, context.threads);
  }
}

}  // namespace anydml
