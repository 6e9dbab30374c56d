#include <algorithm>

#include "base/dispatch.h"
#include "ops/common/coordinates.h"
#include "ops/integer_product/problem.h"

namespace anydml {
namespace {

uint64_t IntegerAt(const Buffer& buffer, DataType type, uint64_t at) {
  return DispatchByType(type, [&]<typename T>() -> uint64_t {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<uint64_t>(
          int64_t{Load<std::conditional_t<sizeof(T) == 8, int32_t, T>>(buffer.data, at)});
    } else {
      return 0;
    }
  });
}

class IntegerReference final : public Kernel {
 public:
  explicit IntegerReference(const IntegerSums& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const ConvolutionShape& s = problem_.shape;
    const auto sizes = [](std::initializer_list<uint64_t> numbers) {
      Dimensions result{};
      std::copy(numbers.begin(), numbers.end(), result.begin());
      return result;
    };
    const auto& w = s.windows;
    const Dimensions outputs =
        sizes({s.outer[0], s.outer[1], s.output_channels, w[0].output, w[1].output, w[2].output});
    const Dimensions inputs = sizes({s.input_channels, w[0].taps, w[1].taps, w[2].taps});
    ForEachCoordinate(outputs, 6, [&](const Dimensions& out) {
      uint64_t sum = 0;
      ForEachCoordinate(inputs, 4, [&](const Dimensions& in) { sum += Product(out, in, arguments); });
      uint64_t at = s.output.Matrix(out[0], out[1]) + out[2] * s.output.channel;
      for (uint32_t d = 0; d < kMaxSpatial; ++d) at += out[3 + d] * s.output.spatial[d];
      if (problem_.sum_type == DataType::kInt64) {
        Store(arguments.outputs[0].data, at, sum);
      } else {
        Store(arguments.outputs[0].data, at, static_cast<uint32_t>(sum));
      }
    });
    return {};
  }

 private:
  // out: outer indices, channel, position; in: channel, taps.
  uint64_t Product(const Dimensions& out, const Dimensions& in, const KernelArguments& arguments) const {
    const ConvolutionShape& s = problem_.shape;
    uint64_t input = s.input.Matrix(out[0], out[1]) + in[0] * s.input.channel;
    uint64_t filter =
        s.filter.Matrix(out[0], out[1]) + out[2] * s.filter.output_channel + in[0] * s.filter.channel;
    uint64_t position = 0;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      const int64_t index = InputIndex(s.windows[d], s.backward, out[3 + d], in[1 + d]);
      if (index < 0) return 0;
      input += static_cast<uint64_t>(index) * s.input.spatial[d];
      filter += in[1 + d] * s.filter.spatial[d];
      position = position * s.windows[d].output + out[3 + d];
    }
    uint64_t x = IntegerAt(arguments.inputs[problem_.input], problem_.input_type, input);
    uint64_t w = IntegerAt(arguments.inputs[problem_.filter], problem_.filter_type, filter);
    if (const auto& zero = problem_.input_zero) {
      x -= IntegerAt(arguments.inputs[zero->input], problem_.input_type,
                     out[1] * zero->group + position * zero->stride);
    }
    if (const auto& zero = problem_.filter_zero) {
      w -= IntegerAt(arguments.inputs[zero->input], problem_.filter_type,
                     out[1] * zero->group + out[2] * zero->stride);
    }
    return x * w;
  }

  IntegerSums problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerReference(const IntegerProductProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  if (!problem.program.program.instructions.empty()) return CreateSumsThenProgram(problem, context, why_not);
  return std::make_unique<IntegerReference>(problem.sums);
}

}  // namespace anydml
