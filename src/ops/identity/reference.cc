#include "ops/common/coordinates.h"
#include "ops/common/dispatch.h"
#include "ops/identity/problem.h"
#include "ops/identity/scale_bias.h"

namespace anydml {
namespace {

template <typename T>
class IdentityReference final : public Kernel {
 public:
  explicit IdentityReference(const IdentityProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const IdentityProblem& p = problem_;
    ForEachCoordinate(p.output.sizes, p.output.rank, [&](const Dimensions& at) {
      const T x = Load<T>(arguments.inputs[0].data, ElementOffset(p.input, at));
      const T y = p.scale_bias ? Apply(x, *p.scale_bias) : x;
      Store<T>(arguments.outputs[0].data, ElementOffset(p.output, at), y);
    });
    return {};
  }

 private:
  static T Apply(T x, ScaleBias s) {
    if constexpr (!std::is_integral_v<T>) {
      return ApplyScaleBias(x, s);
    } else if (IsIntegral(s.scale) && IsIntegral(s.bias)) {
      return ApplyScaleBiasExact(x, Modulo64(s.scale), Modulo64(s.bias));
    } else {
      return ApplyScaleBiasRounded(x, s);
    }
  }

  IdentityProblem problem_;
};

template <typename T>
std::unique_ptr<const Kernel> Create(const IdentityProblem& problem) {
  return std::make_unique<IdentityReference<T>>(problem);
}

}  // namespace

std::unique_ptr<const Kernel> CreateIdentityReference(const IdentityProblem& problem, const LowerContext&,
                                                      std::string*) {
  // A plain copy goes by bits: loading a signalling NaN as a number may change it.
  if (!problem.scale_bias) {
    return DispatchByWidth(problem.output.type, [&]<typename T>() { return Create<T>(problem); });
  }
  return DispatchByType(problem.output.type, [&]<typename T>() { return Create<T>(problem); });
}

}  // namespace anydml
