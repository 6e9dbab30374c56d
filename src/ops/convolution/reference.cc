#include <algorithm>

#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/convolution/problem.h"
#include "ops/element/reference_functions.h"

namespace anydml {
namespace {

class ConvolutionReference final : public Kernel {
 public:
  explicit ConvolutionReference(const ConvolutionProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const ConvolutionShape& p = problem_.shape;
    const auto sizes = [](std::initializer_list<uint64_t> numbers) {
      Dimensions result{};
      std::copy(numbers.begin(), numbers.end(), result.begin());
      return result;
    };
    const auto& w = p.windows;
    const Dimensions outputs =
        sizes({p.outer[0], p.outer[1], p.output_channels, w[0].output, w[1].output, w[2].output});
    const Dimensions inputs = sizes({p.input_channels, w[0].taps, w[1].taps, w[2].taps});
    ForEachCoordinate(outputs, 6, [&](const Dimensions& out) {
      double sum = 0;
      ForEachCoordinate(inputs, 4, [&](const Dimensions& in) { sum += Product(out, in, arguments); });
      Finish(out, sum, arguments);
    });
    return {};
  }

 private:
  double At(const Buffer& buffer, uint64_t offset) const {
    return problem_.type == DataType::kFloat16 ? ToFloat(Load<Half>(buffer.data, offset))
                                               : Load<float>(buffer.data, offset);
  }

  // out: outer indices, channel, position; in: channel, taps.
  double Product(const Dimensions& out, const Dimensions& in, const KernelArguments& arguments) const {
    const ConvolutionShape& p = problem_.shape;
    uint64_t input = p.input.Matrix(out[0], out[1]) + in[0] * p.input.channel;
    uint64_t filter =
        p.filter.Matrix(out[0], out[1]) + out[2] * p.filter.output_channel + in[0] * p.filter.channel;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      const int64_t index = InputIndex(p.windows[d], p.backward, out[3 + d], in[1 + d]);
      if (index < 0) return 0;
      input += static_cast<uint64_t>(index) * p.input.spatial[d];
      filter += in[1 + d] * p.filter.spatial[d];
    }
    return At(arguments.inputs[0], input) * At(arguments.inputs[1], filter);
  }

  void Finish(const Dimensions& out, double sum, const KernelArguments& arguments) const {
    const ConvolutionShape& p = problem_.shape;
    if (problem_.bias) {
      sum += At(arguments.inputs[2], (out[1] * p.output_channels + out[2]) * *problem_.bias);
    }
    auto result = static_cast<float>(sum);
    for (const Instruction& i : problem_.activation.instructions) result = reference::Float(i, result, 0, 0);
    uint64_t at = p.output.Matrix(out[0], out[1]) + out[2] * p.output.channel;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) at += out[3 + d] * p.output.spatial[d];
    if (problem_.type == DataType::kFloat16) {
      Store(arguments.outputs[0].data, at, ToHalf(result));
    } else {
      Store(arguments.outputs[0].data, at, result);
    }
  }

  ConvolutionProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionReference(const ConvolutionProblem& problem,
                                                         const LowerContext&, std::string*) {
  return std::make_unique<ConvolutionReference>(problem);
}

}  // namespace anydml
