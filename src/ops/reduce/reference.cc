#include <cmath>
#include <limits>
#include <type_traits>

#include "base/dispatch.h"
#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/reduce/problem.h"

namespace anydml {
namespace {

class ReduceReference final : public Kernel {
 public:
  explicit ReduceReference(const ReduceProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    ForEachCoordinate(problem_.output.sizes, problem_.output.rank, [&](const Dimensions& at) {
      DispatchByType(problem_.input.type, [&]<typename T>() {
        ReduceAt<T>(at, arguments.inputs[0].data, arguments.outputs[0].data);
      });
    });
    return {};
  }

 private:
  // Calls body(x, position) for all elements that belong to the output's element `at`.
  template <typename T, typename Body>
  void ForEachElement(const Dimensions& at, const std::byte* input, Body&& body) const {
    Dimensions sizes = problem_.input.sizes;
    for (uint32_t d = 0; d < problem_.input.rank; ++d) {
      if (!Has(problem_.axes, d)) sizes[d] = 1;
    }
    uint64_t position = 0;
    ForEachCoordinate(sizes, problem_.input.rank, [&](const Dimensions& inside) {
      Dimensions whole = at;
      for (uint32_t d = 0; d < problem_.input.rank; ++d) whole[d] += inside[d];
      const T x = Load<T>(input, ElementOffset(problem_.input, whole));
      if constexpr (std::is_same_v<T, Half>) {
        body(ToFloat(x), position++);
      } else {
        body(x, position++);
      }
    });
  }

  template <typename T>
  void ReduceAt(const Dimensions& at, const std::byte* input, std::byte* output) const {
    const uint64_t offset = ElementOffset(problem_.output, at);
    if (IsArg(problem_.function)) {
      const uint64_t index = ExtremeOf<T>(at, input);
      DispatchByIndexType(problem_.output.type,
                          [&]<typename I>() { Store<I>(output, offset, static_cast<I>(index)); });
    } else if constexpr (std::is_integral_v<T>) {
      Store<T>(output, offset, WholeNumberOf<T>(at, input));
    } else {
      const auto number = static_cast<float>(NumberOf<T>(at, input));
      const float result = std::isnan(number) ? std::numeric_limits<float>::quiet_NaN() : number;
      if constexpr (std::is_same_v<T, Half>) {
        Store<Half>(output, offset, ToHalf(result));
      } else {
        Store<float>(output, offset, result);
      }
    }
  }

  template <typename T>
  uint64_t ExtremeOf(const Dimensions& at, const std::byte* input) const {
    using Number = std::conditional_t<std::is_same_v<T, Half>, float, T>;
    const bool max = problem_.function == ReduceFunction::kArgmax;
    // NaN is beyond every number, and all NaNs are equal.
    const auto beyond = [&](Number a, Number b) {
      if constexpr (std::is_floating_point_v<Number>) {
        if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
      }
      return max ? a > b : a < b;
    };
    uint64_t index = 0;
    Number extreme{};
    ForEachElement<T>(at, input, [&](Number x, uint64_t position) {
      if (position == 0 || beyond(x, extreme) || (problem_.last && !beyond(extreme, x))) {
        index = position;
        extreme = x;
      }
    });
    return index;
  }

  template <typename T>
  double NumberOf(const Dimensions& at, const std::byte* input) const {
    double sum = 0, squares = 0, magnitudes = 0, product = 1, max = -INFINITY, min = INFINITY, n = 0;
    bool nan = false;
    ForEachElement<T>(at, input, [&](double x, uint64_t) {
      sum += x;
      squares += x * x;
      magnitudes += std::abs(x);
      product *= x;
      nan = nan || std::isnan(x);
      if (x > max || (x == max && !std::signbit(x))) max = x;  // +0 is larger than -0
      if (x < min || (x == min && std::signbit(x))) min = x;
      ++n;
    });
    switch (problem_.function) {
      case ReduceFunction::kAverage:
        return static_cast<float>(sum) / static_cast<float>(n);
      case ReduceFunction::kL1:
        return magnitudes;
      case ReduceFunction::kL2:
        return std::sqrt(squares);
      case ReduceFunction::kLogSum:
        return std::log(sum);
      case ReduceFunction::kMax:
        return nan ? NAN : max;
      case ReduceFunction::kMin:
        return nan ? NAN : min;
      case ReduceFunction::kMultiply:
        return product;
      case ReduceFunction::kSumSquare:
        return squares;
      case ReduceFunction::kLogSumExp: {
        if (nan || std::isinf(max)) return nan ? NAN : max;
        double powers = 0;
        ForEachElement<T>(at, input, [&](double x, uint64_t) { powers += std::exp(x - max); });
        return max + std::log(powers);
      }
      default:
        return sum;
    }
  }

  // Modulo 2^bits, except for extremes.
  template <typename T>
  T WholeNumberOf(const Dimensions& at, const std::byte* input) const {
    uint64_t sum = 0, squares = 0, magnitudes = 0, product = 1;
    T max = std::numeric_limits<T>::lowest(), min = std::numeric_limits<T>::max();
    ForEachElement<T>(at, input, [&](T x, uint64_t) {
      const uint64_t bits = static_cast<std::make_unsigned_t<T>>(x);
      sum += bits;
      squares += bits * bits;
      magnitudes += x < T{0} ? 0 - bits : bits;
      product *= bits;
      max = x > max ? x : max;
      min = x < min ? x : min;
    });
    switch (problem_.function) {
      case ReduceFunction::kL1:
        return static_cast<T>(magnitudes);
      case ReduceFunction::kMax:
        return max;
      case ReduceFunction::kMin:
        return min;
      case ReduceFunction::kMultiply:
        return static_cast<T>(product);
      case ReduceFunction::kSumSquare:
        return static_cast<T>(squares);
      default:
        return static_cast<T>(sum);
    }
  }

  ReduceProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateReduceReference(const ReduceProblem& problem, const LowerContext&,
                                                    std::string*) {
  return std::make_unique<ReduceReference>(problem);
}

}  // namespace anydml
