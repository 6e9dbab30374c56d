#include <optional>

#include "base/dispatch.h"
#include "ops/common/coordinates.h"
#include "ops/scatter/problem.h"

namespace anydml {
namespace {

template <typename Element, typename Index>
class ScatterReference final : public Kernel {
 public:
  explicit ScatterReference(const ScatterProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const ScatterProblem& p = problem_;
    const std::byte* input = arguments.inputs[0].data;
    const std::byte* indices = arguments.inputs[1].data;
    const std::byte* updates = arguments.inputs[2].data;
    std::byte* output = arguments.outputs[0].data;

    // output = input
    if (input != output || !SameLayout(p.input, p.output)) {
      ForEachCoordinate(p.output.sizes, p.output.rank, [&](const Dimensions& at) {
        Store(output, ElementOffset(p.output, at), Load<Element>(input, ElementOffset(p.input, at)));
      });
    }
    // output[indices[...]] = updates[...]
    bool reported = arguments.data_errors == nullptr;
    ForEachCoordinate(p.updates.sizes, p.updates.rank, [&](const Dimensions& at) {
      const Dimensions tuple = p.kind == ScatterProblem::Kind::kNd ? TupleOfSliceElement(at) : at;
      if (const std::optional<Dimensions> target = Target(indices, tuple, at)) {
        Store(output, ElementOffset(p.output, *target), Load<Element>(updates, ElementOffset(p.updates, at)));
      } else if (!reported) {
        reported = true;
        arguments.data_errors->ReportDataError(DescribeBadTuple(p, indices, tuple));
      }
    });
    return {};
  }

 private:
  // SCATTER_ND: the coordinate in the indices (component 0) of the tuple that places update `at`. An update's
  // coordinate is, right-aligned, the tuple's position followed by the position within the slice.
  Dimensions TupleOfSliceElement(const Dimensions& at) const {
    const ScatterProblem& p = problem_;
    const uint32_t rank = p.updates.rank;
    const uint32_t positions = p.indices_dimensions - 1;
    const uint32_t slice = p.input_dimensions - p.tuple_size();
    Dimensions tuple{};
    for (uint32_t d = 0; d < positions; ++d)
      tuple[rank - 1 - positions + d] = at[rank - slice - positions + d];
    return tuple;
  }

  // The target of update `at`; empty if an index is out of range.
  std::optional<Dimensions> Target(const std::byte* indices, Dimensions tuple, const Dimensions& at) const {
    const ScatterProblem& p = problem_;
    Dimensions target{};
    if (p.kind == ScatterProblem::Kind::kElements) {
      target = at;
    } else {
      const uint32_t slice = p.input_dimensions - p.tuple_size();
      for (uint32_t d = p.output.rank - slice; d < p.output.rank; ++d) target[d] = at[d];
    }
    for (uint32_t c = 0; c < p.tuple_size(); ++c) {
      if (p.kind == ScatterProblem::Kind::kNd) tuple[p.indices.rank - 1] = c;
      const uint32_t dimension = p.target_dimension(c);
      const uint64_t size = p.output.sizes[dimension];
      const Index index = Load<Index>(indices, ElementOffset(p.indices, tuple));
      if (index >= 0) {
        if (static_cast<uint64_t>(index) >= size) return std::nullopt;
        target[dimension] = static_cast<uint32_t>(index);
      } else {
        const int64_t from_end = static_cast<int64_t>(size) + static_cast<int64_t>(index);
        if (!p.wraps || from_end < 0) return std::nullopt;
        target[dimension] = static_cast<uint32_t>(from_end);
      }
    }
    return target;
  }

  ScatterProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateScatterReference(const ScatterProblem& problem, const LowerContext&,
                                                     std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() {
    return DispatchByIndexType(problem.indices.type, [&]<typename Index>() -> std::unique_ptr<const Kernel> {
      return std::make_unique<ScatterReference<Element, Index>>(problem);
    });
  });
}

}  // namespace anydml
