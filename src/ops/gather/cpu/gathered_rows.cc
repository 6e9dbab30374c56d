#include <atomic>
#include <cstring>
#include <vector>

#include "base/dispatch.h"
#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/gather/loops.h"

namespace anydml {
namespace {

// The prefetch distance in iterations: places of rows are as random as the indices.
constexpr uint64_t kAhead = 8;
constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kStreamedRow = 1024;

template <typename Index>
uint64_t SourceOf(const GatherLoops& loops, const Index* tuple, bool* in_range) {
  uint64_t offset = 0;
  for (uint32_t c = 0; c < loops.tuple_size; ++c) {
    const GatherLoops::Component& component = loops.tuple[c];
    const auto value = static_cast<int64_t>(tuple[component.index_offset]);
    offset += ResolveIndex(component, value, std::is_signed_v<Index>, in_range) * component.input_stride;
  }
  return offset;
}

template <typename Element>
void CopyRow(const Element* from, uint64_t from_stride, Element* to, uint64_t to_stride, uint64_t count,
             bool streams) {
  if (streams) {
    StreamCopy(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
               count * sizeof(Element));
  } else if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, count * sizeof(Element));
  } else {
    for (uint64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

template <typename Element, typename Index>
class GatherCpu final : public Kernel {
 public:
  GatherCpu(const GatherProblem& problem, uint32_t threads)
      : problem_(problem), loops_(MakeGatherLoops(problem)) {
    const uint64_t bytes = ElementCount(problem.output) * sizeof(Element);
    const uint32_t parts = PartsForBytes(bytes, threads);
    parts_ = CutNest(loops_.elements, LoopToCut(loops_.elements, parts), parts);
    // Streaming would write cache lines that rows share partially.
    const LoopNest<3>::Loop& inner = parts_[0].inner;
    const uint64_t row_bytes = inner.size * sizeof(Element);
    streams_ = bytes >= kStreamBytes && inner.strides == LoopNest<3>::Offsets{1, 1, 0} &&
               row_bytes >= kStreamedRow && row_bytes % kLineBytes == 0;
  }

  Status Run(const KernelArguments& arguments) const override {
    std::atomic<bool> all_in_range = true;
    ParallelFor(arguments.executor, static_cast<uint32_t>(parts_.size()), [&](uint32_t p) {
      const bool in_range = parts_[p].inner.strides[GatherLoops::kIndices] == 0
                                ? CopyRows(parts_[p], arguments)
                                : CopyElements(parts_[p], arguments);
      if (!in_range) all_in_range.store(false, std::memory_order_relaxed);
    });
    if (!all_in_range.load(std::memory_order_relaxed)) ReportFirstBad(arguments);
    return {};
  }

 private:
  struct Tensors {
    const Element* input;
    const Index* indices;
    Element* output;
  };
  static Tensors TensorsOf(const KernelArguments& arguments) {
    return {reinterpret_cast<const Element*>(arguments.inputs[0].data),
            reinterpret_cast<const Index*>(arguments.inputs[1].data),
            reinterpret_cast<Element*>(arguments.outputs[0].data)};
  }

  // For an innermost loop within one tuple's slice. False if an index was out of range.
  bool CopyRows(const NestPart<3>& part, const KernelArguments& arguments) const {
    const Tensors tensors = TensorsOf(arguments);
    LoopNest<3> outer = part.outer;
    const LoopNest<3>::Loop rows = TakeInnermost(&outer), inner = part.inner;
    const uint64_t index_step = rows.strides[GatherLoops::kIndices];
    const bool streams = streams_ && reinterpret_cast<uintptr_t>(tensors.output) % kLineBytes == 0;
    bool in_range = true, ignored = true;
    ForEach(outer, part.start, [&](LoopNest<3>::Offsets at) {
      for (uint64_t i = 0; i < rows.size; ++i) {
        const Index* const tuple = tensors.indices + at[GatherLoops::kIndices];
        if (i + kAhead < rows.size) {
          const uint64_t later = at[GatherLoops::kInput] + kAhead * rows.strides[GatherLoops::kInput] +
                                 SourceOf(loops_, tuple + kAhead * index_step, &ignored);
          __builtin_prefetch(tensors.input + later);
          __builtin_prefetch(tensors.input + later + kLineBytes / sizeof(Element));
        }
        const uint64_t from = at[GatherLoops::kInput] + SourceOf(loops_, tuple, &in_range);
        CopyRow(tensors.input + from, inner.strides[GatherLoops::kInput],
                tensors.output + at[GatherLoops::kOutput], inner.strides[GatherLoops::kOutput], inner.size,
                streams);
        for (size_t o = 0; o < at.size(); ++o) at[o] += rows.strides[o];
      }
    });
    if (streams) EndStream();
    return in_range;
  }

  // For loops in which every element has its own tuple.
  bool CopyElements(const NestPart<3>& part, const KernelArguments& arguments) const {
    const Tensors tensors = TensorsOf(arguments);
    const LoopNest<3>::Loop inner = part.inner;
    // Copies, which the compiler can keep in registers because stores cannot alias them.
    const GatherLoops loops = loops_;
    const GatherLoops::Component only = loops.tuple[0];
    bool in_range = true;
    ForEach(part.outer, part.start, [&](LoopNest<3>::Offsets at) {
      const Element* const input = tensors.input + at[GatherLoops::kInput];
      const Index* const indices = tensors.indices + at[GatherLoops::kIndices];
      Element* const output = tensors.output + at[GatherLoops::kOutput];
      const auto [to_step, from_step, index_step] = inner.strides;
      if (loops.tuple_size == 1) {
        for (uint64_t i = 0; i < inner.size; ++i) {
          const auto value = static_cast<int64_t>(indices[i * index_step]);
          const uint64_t index = ResolveIndex(only, value, std::is_signed_v<Index>, &in_range);
          output[i * to_step] = input[i * from_step + index * only.input_stride];
        }
      } else {
        for (uint64_t i = 0; i < inner.size; ++i) {
          output[i * to_step] = input[i * from_step + SourceOf(loops, indices + i * index_step, &in_range)];
        }
      }
    });
    return in_range;
  }

  // Searches again: the parts only record that there is one, and this is rare.
  void ReportFirstBad(const KernelArguments& arguments) const {
    if (arguments.data_errors == nullptr) return;
    const Tensors tensors = TensorsOf(arguments);
    uint64_t number = 0;
    bool reported = false;
    ForEach(loops_.tuples, [&](const LoopNest<1>::Offsets& at) {
      bool in_range = true;
      if (!reported) SourceOf(loops_, tensors.indices + at[0], &in_range);
      if (!in_range) {
        arguments.data_errors->ReportDataError(
            DescribeBadIndex(problem_, arguments.inputs[1].data, TupleCoordinate(problem_, number)));
        reported = true;
      }
      ++number;
    });
  }

  GatherProblem problem_;
  GatherLoops loops_;
  std::vector<NestPart<3>> parts_;
  bool streams_;  // see StreamCopy
};

}  // namespace

std::unique_ptr<const Kernel> CreateGatherCpu(const GatherProblem& problem, const LowerContext& context,
                                              std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() {
    return DispatchByIndexType(problem.indices.type, [&]<typename Index>() -> std::unique_ptr<const Kernel> {
      return std::make_unique<GatherCpu<Element, Index>>(problem, context.threads);
    });
  });
}

}  // namespace anydml
