#include <cmath>
#include <limits>

#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/softmax/problem.h"

namespace anydml {
namespace {

class SoftmaxReference final : public Kernel {
 public:
  explicit SoftmaxReference(const SoftmaxProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const Dimensions sets = WithoutAxes(problem_.input.sizes, problem_.axes);
    ForEachCoordinate(sets, problem_.input.rank, [&](const Dimensions& at) {
      DoSet(at, arguments.inputs[0].data, arguments.outputs[0].data);
    });
    return {};
  }

 private:
  double Get(const std::byte* input, const Dimensions& at) const {
    const uint64_t offset = ElementOffset(problem_.input, at);
    if (problem_.input.type == DataType::kFloat16) return ToFloat(Load<Half>(input, offset));
    return Load<float>(input, offset);
  }

  void Put(std::byte* output, const Dimensions& at, double number) const {
    const uint64_t offset = ElementOffset(problem_.output, at);
    const float value =
        std::isnan(number) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(number);
    if (problem_.output.type == DataType::kFloat16) {
      Store<Half>(output, offset, ToHalf(value));
    } else {
      Store<float>(output, offset, value);
    }
  }

  // Calls body(coordinates) for the elements of the set of `at`.
  template <typename Body>
  void ForEachElement(const Dimensions& at, Body&& body) const {
    Dimensions sizes = problem_.input.sizes;
    for (uint32_t d = 0; d < problem_.input.rank; ++d) {
      if (!Has(problem_.axes, d)) sizes[d] = 1;
    }
    ForEachCoordinate(sizes, problem_.input.rank, [&](const Dimensions& inside) {
      Dimensions whole = at;
      for (uint32_t d = 0; d < problem_.input.rank; ++d) whole[d] += inside[d];
      body(static_cast<const Dimensions&>(whole));
    });
  }

  void DoSet(const Dimensions& at, const std::byte* input, std::byte* output) const {
    double max = 0;
    Dimensions first = at;  // of the maximum
    ForEachElement(at, [&](const Dimensions& element) {
      const double x = Get(input, element);
      if (element == at || (!std::isnan(max) && (x > max || std::isnan(x)))) {
        max = x;
        first = element;
      }
    });
    double sum = 0;
    ForEachElement(at, [&](const Dimensions& element) { sum += std::exp(Get(input, element) - max); });
    ForEachElement(at, [&](const Dimensions& element) {
      const double difference = Get(input, element) - max;
      switch (problem_.kind) {
        case SoftmaxKind::kSoftmax:
          return Put(output, element, std::exp(difference) / sum);
        case SoftmaxKind::kLogSoftmax:
          return Put(output, element, difference - std::log(sum));
        default:
          return Put(output, element, element == first ? 1 : 0);
      }
    });
  }

  SoftmaxProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateSoftmaxReference(const SoftmaxProblem& problem, const LowerContext&,
                                                     std::string*) {
  return std::make_unique<SoftmaxReference>(problem);
}

}  // namespace anydml
