#include <vector>

#include "base/dispatch.h"
#include "ops/common/nest_parts.h"
#include "ops/one_hot/problem.h"

namespace anydml {
namespace {

template <typename Element, typename Index>
class OneHotCpu final : public Kernel {
 public:
  OneHotCpu(const OneHotProblem& problem, uint32_t threads) : wrap_(problem.wrap), on_(problem.on) {
    const LoopNest<3> nest = OneHotNest(problem);
    const uint32_t parts = PartsForBytes(ElementCount(problem.output) * sizeof(Element), threads);
    parts_ = CutNest(nest, LoopToCut(nest, parts), parts);
  }

  Status Run(const KernelArguments& arguments) const override {
    const auto* indices = reinterpret_cast<const Index*>(arguments.inputs[0].data);
    const auto* values = reinterpret_cast<const Element*>(arguments.inputs[1].data);
    auto* output = reinterpret_cast<Element*>(arguments.outputs[0].data);
    const Element off = values[0], on = values[on_];
    ParallelFor(arguments.executor, static_cast<uint32_t>(parts_.size()), [&](uint32_t number) {
      const NestPart<3>& part = parts_[number];
      const uint64_t to_step = part.inner.strides[kOneHotOutput];
      const uint64_t index_step = part.inner.strides[kOneHotIndices];
      const uint64_t place_step = part.inner.strides[kOneHotPlace];
      const uint64_t size = part.inner.size;
      ForEach(part.outer, part.start, [&](const LoopNest<3>::Offsets& at) {
        const Index* const from = indices + at[kOneHotIndices];
        Element* const to = output + at[kOneHotOutput];
        if (index_step == 0 && place_step == 1) {  // along the axis
          if (to_step == 1) {
            std::fill_n(to, size, off);
          } else {
            for (uint64_t i = 0; i < size; ++i) to[i * to_step] = off;
          }
          const uint64_t place = Place(*from) - at[kOneHotPlace];
          if (place < size) to[place * to_step] = on;
        } else {
          for (uint64_t i = 0; i < size; ++i) {
            const uint64_t here = at[kOneHotPlace] + i * place_step;
            to[i * to_step] = Place(from[i * index_step]) == here ? on : off;
          }
        }
      });
    });
    return {};
  }

 private:
  uint64_t Place(Index index) const {
    return PlaceOf(static_cast<int64_t>(index), std::is_signed_v<Index>, wrap_);
  }

  uint64_t wrap_;
  uint64_t on_;
  std::vector<NestPart<3>> parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateOneHotCpu(const OneHotProblem& problem, const LowerContext& context,
                                              std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() {
    return DispatchByIndexType(problem.indices.type, [&]<typename Index>() -> std::unique_ptr<const Kernel> {
      return std::make_unique<OneHotCpu<Element, Index>>(problem, context.threads);
    });
  });
}

}  // namespace anydml
