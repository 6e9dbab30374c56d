#include <algorithm>
#include <cstring>
#include <vector>

#include "base/dispatch.h"
#include "ops/common/nest_parts.h"
#include "ops/generate/problem.h"

namespace anydml {
namespace {

using Loop = LoopNest<4>::Loop;
using Offsets = LoopNest<4>::Offsets;

// Runs the iterations of a nest's innermost loop.
using MakeRow = void (*)(const GenerateProblem& p, const Loop& loop, const Offsets& at,
                         const std::byte* input, std::byte* output);

template <typename Element>
void Fill(Element* to, uint64_t step, uint64_t count, Element value) {
  if (step == 1) {
    std::fill_n(to, count, value);
  } else {
    for (uint64_t i = 0; i < count; ++i) to[i * step] = value;
  }
}

template <typename Element>
void ConstantRow(const GenerateProblem& p, const Loop& loop, const Offsets& at, const std::byte*,
                 std::byte* output) {
  Fill(reinterpret_cast<Element*>(output) + at[kGenerateOutput], loop.strides[kGenerateOutput], loop.size,
       static_cast<Element>(p.value));
}

template <typename Element>
void SequenceRow(const GenerateProblem& p, const Loop& loop, const Offsets& at, const std::byte*,
                 std::byte* output) {
  auto* const to = reinterpret_cast<Element*>(output) + at[kGenerateOutput];
  const uint64_t start = p.value, delta = p.delta, first = at[kGenerateNumber];
  const uint64_t step = loop.strides[kGenerateNumber], to_step = loop.strides[kGenerateOutput];
  if (step == 1 && to_step == 1) {
    for (uint64_t i = 0; i < loop.size; ++i) to[i] = SequenceElement<Element>(start, delta, first + i);
  } else {
    for (uint64_t i = 0; i < loop.size; ++i) {
      to[i * to_step] = SequenceElement<Element>(start, delta, first + i * step);
    }
  }
}

template <typename Element>
void BandRow(const GenerateProblem& p, const Loop& loop, const Offsets& at, const std::byte* input,
             std::byte* output) {
  auto* const to = reinterpret_cast<Element*>(output) + at[kGenerateOutput];
  const auto* const from = reinterpret_cast<const Element*>(input) + at[kGenerateInput];
  const uint64_t to_step = loop.strides[kGenerateOutput], from_step = loop.strides[kGenerateInput];
  const auto value = static_cast<Element>(p.value);
  const auto keep = [&](uint64_t begin, uint64_t end) {
    if (begin == end) return;
    if (!p.has_input) return Fill(to + begin * to_step, to_step, end - begin, Element{0});
    if (to_step == 1 && from_step == 1) {
      std::memcpy(to + begin, from + begin, (end - begin) * sizeof(Element));
      return;
    }
    for (uint64_t i = begin; i < end; ++i) to[i * to_step] = from[i * from_step];
  };
  const auto diagonal = static_cast<int64_t>(at[kGenerateDiagonal]);
  if (loop.strides[kGenerateDiagonal] != 1) {  // not along x
    for (uint64_t i = 0; i < loop.size; ++i) {
      const auto here = static_cast<int64_t>(at[kGenerateDiagonal] + i * loop.strides[kGenerateDiagonal]);
      if (FillsDiagonal(here, p.begin, p.end)) {
        to[i * to_step] = value;
      } else {
        keep(i, i + 1);
      }
    }
    return;
  }
  const auto column = [&](int64_t of) {
    return static_cast<uint64_t>(std::clamp<int64_t>(of - diagonal, 0, static_cast<int64_t>(loop.size)));
  };
  const uint64_t begin = column(std::min(p.begin, p.end)), end = column(std::max(p.begin, p.end));
  if (p.end >= p.begin) {
    keep(0, begin);
    Fill(to + begin * to_step, to_step, end - begin, value);
    keep(end, loop.size);
  } else {
    Fill(to, to_step, begin, value);
    keep(begin, end);
    Fill(to + end * to_step, to_step, loop.size - end, value);
  }
}

MakeRow FindRow(const GenerateProblem& problem) {
  if (problem.kind == GenerateProblem::Kind::kSequence) {
    if (problem.output.type == DataType::kFloat32) return SequenceRow<float>;
    if (problem.output.type == DataType::kFloat16) return SequenceRow<Half>;
  }
  return DispatchByWidth(problem.output.type, [&]<typename Element>() -> MakeRow {
    switch (problem.kind) {
      case GenerateProblem::Kind::kConstant:
        return ConstantRow<Element>;
      case GenerateProblem::Kind::kSequence:
        return SequenceRow<Element>;
      default:
        return BandRow<Element>;
    }
  });
}

class GenerateCpu final : public Kernel {
 public:
  GenerateCpu(const GenerateProblem& problem, uint32_t threads)
      : problem_(problem), make_row_(FindRow(problem)) {
    const LoopNest<4> nest = GenerateNest(problem);
    const uint64_t bytes = ElementCount(problem.output) * (BitSize(problem.output.type) / 8);
    const uint32_t parts = PartsForBytes(bytes, threads);
    parts_ = CutNest(nest, LoopToCut(nest, parts), parts);
  }

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* const input = problem_.has_input ? arguments.inputs[0].data : nullptr;
    ParallelFor(arguments.executor, static_cast<uint32_t>(parts_.size()), [&](uint32_t p) {
      const NestPart<4>& part = parts_[p];
      ForEach(part.outer, part.start, [&](const Offsets& at) {
        make_row_(problem_, part.inner, at, input, arguments.outputs[0].data);
      });
    });
    return {};
  }

 private:
  GenerateProblem problem_;
  MakeRow make_row_;
  std::vector<NestPart<4>> parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGenerateCpu(const GenerateProblem& problem, const LowerContext& context,
                                                std::string*) {
  return std::make_unique<GenerateCpu>(problem, context.threads);
}

}  // namespace anydml
