#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernel/composite.h"
#include "ops/batchnorm/problem.h"
#include "ops/common/coordinates.h"

namespace anydml {
namespace {

Dimensions Clipped(const TensorDesc& tensor, Dimensions at) {
  for (uint32_t d = 0; d < tensor.rank; ++d) at[d] = tensor.sizes[d] == 1 ? 0 : at[d];
  return at;
}

float Element(const TensorDesc& tensor, const Buffer& buffer, const Dimensions& at) {
  const uint64_t offset = ElementOffset(tensor, Clipped(tensor, at));
  return tensor.type == DataType::kFloat16 ? ToFloat(Load<Half>(buffer.data, offset))
                                           : Load<float>(buffer.data, offset);
}

// Makes NaNs canonical.
float Canonical(double value) {
  return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(value);
}

void StoreElement(const TensorDesc& tensor, const Buffer& buffer, const Dimensions& at, double value) {
  const uint64_t offset = ElementOffset(tensor, Clipped(tensor, at));
  const float number = Canonical(value);
  if (tensor.type == DataType::kFloat16) {
    Store<Half>(buffer.data, offset, ToHalf(number));
  } else {
    Store<float>(buffer.data, offset, number);
  }
}

// Sums are in FLOAT64; variants without sums round every step to FLOAT32, as all kernels do.
class BatchNormReference final : public CompositeKernel {
 public:
  BatchNormReference(const BatchNormProblem& problem, std::unique_ptr<const Kernel> finish)
      : p_(problem),
        at_(batch_norm::InputsOf(problem.kind)),
        reduced_(ReducedBy(problem.scale)),
        finish_(AddPart("cpu.reference", std::move(finish))) {
    numbers_ = AddScratch("numbers", ElementCount(problem.input) * sizeof(float));
  }

  Status Run(const KernelArguments& arguments) const override {
    if (p_.kind == BatchNormProblem::kInference) {
      ForEachCoordinate(p_.input.sizes, p_.input.rank, [&](const Dimensions& at) {
        const auto input = [&](const TensorDesc& tensor, uint32_t i) {
          return Element(tensor, arguments.inputs[i], at);
        };
        const float factor =
            input(p_.scale, at_.scale) / std::sqrt(input(*p_.variance, at_.variance) + p_.epsilon);
        Number(arguments, at) =
            Canonical((input(p_.input, 0) - input(*p_.mean, at_.mean)) * factor + input(*p_.bias, at_.bias));
      });
    } else {
      ForEachCoordinate(p_.scale.sizes, p_.scale.rank, [&](const Dimensions& set) {
        if (p_.kind == BatchNormProblem::kTraining) return Train(arguments, set);
        Differentiate(arguments, set);
      });
    }
    const Buffer inputs[] = {numbers_.In(arguments.temporary)};
    KernelArguments finish = arguments;
    finish.inputs = inputs;
    finish.outputs = arguments.outputs.first(1);
    return RunPart(finish_, finish);
  }

 private:
  float& Number(const KernelArguments& arguments, const Dimensions& at) const {
    uint64_t index = 0;
    for (uint32_t d = 0; d < p_.input.rank; ++d) index = index * p_.input.sizes[d] + at[d];
    return numbers_.In<float>(arguments.temporary)[index];
  }

  template <typename Body>
  void ForEachOfSet(const Dimensions& set, Body&& body) const {
    Dimensions sizes = p_.input.sizes;
    for (uint32_t d = 0; d < p_.input.rank; ++d) sizes[d] = reduced_[d] ? sizes[d] : 1;
    ForEachCoordinate(sizes, p_.input.rank, [&](const Dimensions& in_set) {
      Dimensions at = set;
      for (uint32_t d = 0; d < p_.input.rank; ++d) at[d] += in_set[d];
      body(static_cast<const Dimensions&>(at));
    });
  }

  template <typename Term>
  double Sum(const Dimensions& set, Term&& term) const {
    double sum = 0;
    ForEachOfSet(set, [&](const Dimensions& at) { sum += term(at); });
    return sum;
  }

  void Train(const KernelArguments& arguments, const Dimensions& set) const {
    const auto x = [&](const Dimensions& at) -> double { return Element(p_.input, arguments.inputs[0], at); };
    const auto count = static_cast<double>(ReducedElements(p_.input, reduced_));
    const double mean = Sum(set, x) / count;
    const double variance =
        Sum(set, [&](const Dimensions& at) { return (x(at) - mean) * (x(at) - mean); }) / count;
    StoreElement(p_.outputs[1], arguments.outputs[1], set, mean);
    StoreElement(p_.outputs[2], arguments.outputs[2], set, variance);
    const double scale = Element(p_.scale, arguments.inputs[at_.scale], set);
    ForEachOfSet(set, [&](const Dimensions& at) {
      double y = scale * (x(at) - mean) / std::sqrt(variance + double{p_.epsilon}) +
                 Element(*p_.bias, arguments.inputs[at_.bias], set);
      if (p_.added) y += Element(*p_.added, arguments.inputs[at_.added], at);
      Number(arguments, at) = Canonical(y);
    });
  }

  void Differentiate(const KernelArguments& arguments, const Dimensions& set) const {
    const auto parameter = [&](const TensorDesc& tensor, uint32_t i) -> double {
      return Element(tensor, arguments.inputs[i], set);
    };
    const double mean = parameter(*p_.mean, at_.mean), scale = parameter(p_.scale, at_.scale);
    const double variance = parameter(*p_.variance, at_.variance) + double{p_.epsilon};
    const auto x = [&](const Dimensions& at) { return Element(p_.input, arguments.inputs[0], at) - mean; };
    const auto gradient = [&](const Dimensions& at) -> double {
      return Element(*p_.gradient, arguments.inputs[at_.gradient], at);
    };
    const double sum = Sum(set, gradient);
    const double product = Sum(set, [&](const Dimensions& at) { return gradient(at) * x(at); });
    StoreElement(p_.outputs[1], arguments.outputs[1], set, product / std::sqrt(variance));
    StoreElement(p_.outputs[2], arguments.outputs[2], set, sum);
    const auto count = static_cast<double>(ReducedElements(p_.input, reduced_));
    const bool is_training = p_.kind == BatchNormProblem::kTrainingGradient;
    ForEachOfSet(set, [&](const Dimensions& at) {
      double dx = gradient(at);
      if (is_training) dx += -sum / count - x(at) * (product / count) / variance;
      Number(arguments, at) = Canonical(dx * scale / std::sqrt(variance));
    });
  }

  BatchNormProblem p_;
  batch_norm::Inputs at_;
  DimensionSet reduced_;
  uint32_t finish_;
  ScratchLayout::Piece numbers_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateBatchNormReference(const BatchNormProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  return std::make_unique<BatchNormReference>(problem,
                                              CreateElementReference(problem.finish, context, why_not));
}

}  // namespace anydml
