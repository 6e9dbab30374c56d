#include <algorithm>
#include <type_traits>

#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/lrn/problem.h"
#include "ops/numbers/bounded.h"

namespace anydml {
namespace {

// Number: double, or Bounded, where it stores how far results may be off.
template <typename Number>
class LrnReference final : public Kernel {
 public:
  explicit LrnReference(const LrnProblem& problem) : p_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const auto x = [&](const Dimensions& at) { return Element(p_.input, arguments.inputs[0], at); };
    const double alpha = double{p_.alpha} / p_.local_size;
    const double beta = p_.beta;
    const auto s = [&](const Dimensions& at) {
      Number sum = 0;
      ForEachInWindow(at, p_.before(), p_.after(),
                      [&](const Dimensions& other) { sum += x(other) * x(other); });
      return Number(p_.bias) + Rounded<Number>(alpha, 1) * sum;
    };
    ForEachCoordinate(p_.input.sizes, p_.input.rank, [&](const Dimensions& at) {
      if (!p_.gradient) return StoreElement(arguments.outputs[0], at, x(at) * Power(s(at), -beta));
      const auto gradient = [&](const Dimensions& other) {
        return Element(*p_.gradient, arguments.inputs[1], other);
      };
      // From all elements that have this one in their window.
      Number others = 0;
      ForEachInWindow(at, p_.after(), p_.before(), [&](const Dimensions& other) {
        others += gradient(other) * x(other) * Power(s(other), -beta - 1);
      });
      StoreElement(
          arguments.outputs[0], at,
          gradient(at) * Power(s(at), -beta) - Rounded<Number>(2 * alpha * beta, 3) * (x(at) * others));
    });
    return {};
  }

 private:
  static Number Element(const TensorDesc& tensor, const Buffer& buffer, const Dimensions& at) {
    const uint64_t offset = ElementOffset(tensor, at);
    return double{tensor.type == DataType::kFloat16 ? ToFloat(Load<Half>(buffer.data, offset))
                                                    : Load<float>(buffer.data, offset)};
  }

  void StoreElement(const Buffer& buffer, const Dimensions& at, const Number& value) const {
    const uint64_t offset = ElementOffset(p_.output, at);
    if constexpr (std::is_same_v<Number, Bounded>) {
      return Store(buffer.data, offset, StoredError(value, p_.output.type));
    } else {
      StoreNumber(buffer, offset, static_cast<float>(value));
    }
  }

  void StoreNumber(const Buffer& buffer, uint64_t offset, float number) const {
    if (p_.output.type == DataType::kFloat16) {
      Store<Half>(buffer.data, offset, ToHalf(number));
    } else {
      Store<float>(buffer.data, offset, number);
    }
  }

  template <typename Body>
  void ForEachInWindow(const Dimensions& at, uint32_t before, uint32_t after, Body&& body) const {
    Dimensions first = at, sizes{};
    for (uint32_t d = 0; d < p_.input.rank; ++d) {
      const bool is_in_window = p_.cross_channel ? d == 1 : d >= 2;
      first[d] = is_in_window ? at[d] - std::min(at[d], before) : at[d];
      const uint32_t last = is_in_window ? at[d] + std::min(p_.input.sizes[d] - 1 - at[d], after) : at[d];
      sizes[d] = last - first[d] + 1;
    }
    ForEachCoordinate(sizes, p_.input.rank, [&](const Dimensions& in_window) {
      Dimensions other = first;
      for (uint32_t d = 0; d < p_.input.rank; ++d) other[d] += in_window[d];
      body(static_cast<const Dimensions&>(other));
    });
  }

  LrnProblem p_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateLrnReference(const LrnProblem& problem, const LowerContext&,
                                                 std::string*) {
  return std::make_unique<LrnReference<double>>(problem);
}

std::unique_ptr<const Kernel> CreateLrnErrors(const LrnProblem& problem) {
  return std::make_unique<LrnReference<Bounded>>(problem);
}

}  // namespace anydml
