#include "base/dispatch.h"
#include "ops/common/coordinates.h"
#include "ops/one_hot/problem.h"

namespace anydml {
namespace {

template <typename Element, typename Index>
class OneHotReference final : public Kernel {
 public:
  explicit OneHotReference(const OneHotProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const OneHotProblem& p = problem_;
    const auto off = Load<Element>(arguments.inputs[1].data, 0);
    const auto on = Load<Element>(arguments.inputs[1].data, p.on);
    ForEachCoordinate(p.output.sizes, p.output.rank, [&](const Dimensions& at) {
      Dimensions where = at;
      where[p.axis] = 0;
      const auto index = Load<Index>(arguments.inputs[0].data, ElementOffset(p.indices, where));
      bool is_on = index == static_cast<Index>(at[p.axis]);
      if constexpr (std::is_signed_v<Index>) {
        is_on = index == int64_t{at[p.axis]} ||
                (p.wrap != 0 && index == int64_t{at[p.axis]} - int64_t{p.output.sizes[p.axis]});
      }
      Store(arguments.outputs[0].data, ElementOffset(p.output, at), is_on ? on : off);
    });
    return {};
  }

 private:
  OneHotProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateOneHotReference(const OneHotProblem& problem, const LowerContext&,
                                                    std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() {
    return DispatchByIndexType(problem.indices.type, [&]<typename Index>() -> std::unique_ptr<const Kernel> {
      return std::make_unique<OneHotReference<Element, Index>>(problem);
    });
  });
}

}  // namespace anydml
