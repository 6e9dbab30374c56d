#include <cstring>

#include "ops/common/dispatch.h"
#include "ops/common/strided_copy.h"
#include "ops/scatter/plan.h"

namespace anydml {
namespace {

constexpr uint64_t kNone = ~uint64_t{0};

template <typename Element, typename Index>
class ScatterTyped final : public Kernel {
 public:
  explicit ScatterTyped(const ScatterProblem& problem)
      : problem_(problem),
        plan_(MakeScatterPlan(problem)),
        copy_(problem.input, problem.output),
        slice_outer_(plan_.slice),
        slice_inner_(TakeInnermost(&slice_outer_)) {}

  void Run(const KernelArguments& arguments) const override {
    copy_.Run(arguments.inputs[0].data, arguments.outputs[0].data);
    const auto* indices = reinterpret_cast<const Index*>(arguments.inputs[1].data);
    const auto* updates = reinterpret_cast<const Element*>(arguments.inputs[2].data);
    auto* output = reinterpret_cast<Element*>(arguments.outputs[0].data);
    const uint64_t bad =
        plan_.slice.rank == 0
            ? Scatter(indices, updates, output, [](const Element* from, Element* to) { *to = *from; })
            : Scatter(indices, updates, output,
                      [this](const Element* from, Element* to) { CopySlice(from, to); });
    if (bad == kNone || arguments.data_errors == nullptr) return;
    arguments.data_errors->ReportDataError(
        DescribeBadTuple(problem_, arguments.inputs[1].data, PositionCoordinate(problem_, bad)));
  }

 private:
  // Returns the number of the first position with an index out of range.
  template <typename WriteSlice>
  uint64_t Scatter(const Index* indices, const Element* updates, Element* output, WriteSlice write) const {
    uint64_t first_bad = kNone;
    uint64_t number = 0;
    ForEach(plan_.positions, [&](const LoopNest<3>::Offsets& offsets) {
      uint64_t target = offsets[ScatterPlan::kOutput];
      bool in_range = true;
      for (uint32_t c = 0; c < plan_.tuple_size; ++c) {
        const ScatterPlan::Component& component = plan_.tuple[c];
        uint64_t index =
            static_cast<uint64_t>(indices[offsets[ScatterPlan::kIndices] + component.index_offset]);
        // Signed indices were sign-extended: adding the size modulo 2^64 wraps those in
        // [-size, -1] and leaves all other negative ones far above any size.
        if (std::is_signed_v<Index> && problem_.wraps && static_cast<int64_t>(index) < 0) {
          index += component.size;
        }
        in_range &= index < component.size;
        target += index * component.output_stride;
      }
      if (in_range) {
        write(updates + offsets[ScatterPlan::kUpdates], output + target);
      } else if (first_bad == kNone) {
        first_bad = number;
      }
      ++number;
    });
    return first_bad;
  }

  void CopySlice(const Element* from, Element* to) const {
    const uint64_t size = slice_inner_.size;
    const uint64_t from_stride = slice_inner_.strides[ScatterPlan::kSliceUpdates];
    const uint64_t to_stride = slice_inner_.strides[ScatterPlan::kSliceOutput];
    ForEach(slice_outer_, [&](const LoopNest<2>::Offsets& offsets) {
      const Element* source = from + offsets[ScatterPlan::kSliceUpdates];
      Element* target = to + offsets[ScatterPlan::kSliceOutput];
      if (from_stride == 1 && to_stride == 1) {
        std::memcpy(target, source, size * sizeof(Element));
      } else {
        for (uint64_t i = 0; i < size; ++i) target[i * to_stride] = source[i * from_stride];
      }
    });
  }

  ScatterProblem problem_;
  ScatterPlan plan_;
  StridedCopy copy_;
  LoopNest<2> slice_outer_;
  LoopNest<2>::Loop slice_inner_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateScatterTyped(const ScatterProblem& problem, std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() {
    return DispatchByIndexType(problem.indices.type, [&]<typename Index>() -> std::unique_ptr<const Kernel> {
      return std::make_unique<ScatterTyped<Element, Index>>(problem);
    });
  });
}

}  // namespace anydml
