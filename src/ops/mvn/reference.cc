#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernel/composite.h"
#include "ops/common/coordinates.h"
#include "ops/mvn/problem.h"

namespace anydml {
namespace {

float Element(const TensorDesc& tensor, const std::byte* data, Dimensions at) {
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.sizes[d] == 1) at[d] = 0;
  }
  const uint64_t offset = ElementOffset(tensor, at);
  return tensor.type == DataType::kFloat16 ? ToFloat(Load<Half>(data, offset)) : Load<float>(data, offset);
}

// Computes in FLOAT64, up to the activation.
class MvnReference final : public CompositeKernel {
 public:
  MvnReference(const MvnProblem& problem, std::unique_ptr<const Kernel> finish)
      : problem_(problem), finish_(AddPart("cpu.reference", std::move(finish))) {
    numbers_ = AddScratch("numbers", ElementCount(problem.input) * sizeof(float));
  }

  Status Run(const KernelArguments& arguments) const override {
    auto* const numbers = numbers_.In<float>(arguments.temporary);
    ForEachCoordinate(Sizes(false), problem_.input.rank,
                      [&](const Dimensions& set) { NormalizeSet(arguments, set, numbers); });
    const Buffer inputs[] = {numbers_.In(arguments.temporary)};
    KernelArguments finish = arguments;
    finish.inputs = inputs;
    return RunPart(finish_, finish);
  }

 private:
  // The sizes of the reduced dimensions or of the others, with 1 for the rest.
  Dimensions Sizes(bool reduced) const {
    Dimensions sizes = problem_.input.sizes;
    for (uint32_t d = 0; d < problem_.input.rank; ++d) {
      if (problem_.reduced[d] != reduced) sizes[d] = 1;
    }
    return sizes;
  }

  template <typename Body>
  void ForEachOfSet(const Dimensions& set, Body&& body) const {
    ForEachCoordinate(Sizes(true), problem_.input.rank, [&](const Dimensions& in_set) {
      Dimensions at = set;
      for (uint32_t d = 0; d < problem_.input.rank; ++d) at[d] += in_set[d];
      body(static_cast<const Dimensions&>(at));
    });
  }

  void NormalizeSet(const KernelArguments& arguments, const Dimensions& set, float* numbers) const {
    const auto x = [&](const Dimensions& at) -> double {
      return Element(problem_.input, arguments.inputs[0].data, at);
    };
    const auto sum = [&](auto&& term) {
      double total = 0;
      ForEachOfSet(set, [&](const Dimensions& at) { total += term(x(at)); });
      return total;
    };
    const auto count = static_cast<double>(ReducedElements(problem_.input, problem_.reduced));
    const double mean = problem_.use_mean ? sum([](double v) { return v; }) / count : 0;
    const double variance = sum([&](double v) { return (v - mean) * (v - mean); }) / count;
    double divisor = problem_.use_variance ? std::sqrt(variance + double{problem_.epsilon}) : 1;
    if (problem_.p != 0) {
      const double norm = problem_.p == 1 ? sum([](double v) { return std::abs(v); })
                                          : std::sqrt(sum([](double v) { return v * v; }));
      divisor = std::isnan(norm) ? norm : std::max(norm, double{problem_.epsilon});
    }
    ForEachOfSet(set, [&](const Dimensions& at) {
      double y = (x(at) - mean) / divisor;
      if (problem_.scale) y *= Element(*problem_.scale, arguments.inputs[1].data, at);
      if (problem_.bias) y += Element(*problem_.bias, arguments.inputs[2].data, at);
      uint64_t index = 0;
      for (uint32_t d = 0; d < problem_.input.rank; ++d) index = index * problem_.input.sizes[d] + at[d];
      // NaNs are canonical.
      numbers[index] = std::isnan(y) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(y);
    });
  }

  MvnProblem problem_;
  uint32_t finish_;
  ScratchLayout::Piece numbers_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateMvnReference(const MvnProblem& problem, const LowerContext& context,
                                                 std::string* why_not) {
  return std::make_unique<MvnReference>(problem, CreateElementReference(problem.finish, context, why_not));
}

}  // namespace anydml
