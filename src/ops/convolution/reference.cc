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
    const ConvolutionProblem& p = problem_;
    const auto sizes = [](uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
      return Dimensions{static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c),
                        static_cast<uint32_t>(d), static_cast<uint32_t>(e), static_cast<uint32_t>(f)};
    };
    const auto& w = p.windows;
    const Dimensions outputs =
        sizes(p.batch, p.groups, p.output_channels, w[0].output, w[1].output, w[2].output);
    const Dimensions inputs = sizes(p.input_channels, w[0].taps, w[1].taps, w[2].taps, 1, 1);
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

  // out: batch, group, channel, positions; in: channel, taps.
  double Product(const Dimensions& out, const Dimensions& in, const KernelArguments& arguments) const {
    const ConvolutionProblem& p = problem_;
    uint64_t input = out[0] * p.input.batch + (out[1] * p.input_channels + in[0]) * p.input.channel;
    uint64_t filter =
        p.filter_offset + out[1] * p.filter_group + out[2] * p.filter.batch + in[0] * p.filter.channel;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      const int64_t index = InputIndex(p.windows[d], p.backward, out[3 + d], in[1 + d]);
      if (index < 0) return 0;
      input += static_cast<uint64_t>(index) * p.input.spatial[d];
      filter += in[1 + d] * p.filter.spatial[d];
    }
    return At(arguments.inputs[0], input) * At(arguments.inputs[1], filter);
  }

  void Finish(const Dimensions& out, double sum, const KernelArguments& arguments) const {
    const ConvolutionProblem& p = problem_;
    const uint64_t channel = out[1] * p.output_channels + out[2];
    if (p.bias) sum += At(arguments.inputs[2], channel * *p.bias);
    auto result = static_cast<float>(sum);
    for (const Instruction& i : p.activation.instructions) result = reference::Float(i, result, 0, 0);
    uint64_t at = out[0] * p.output.batch + channel * p.output.channel;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) at += out[3 + d] * p.output.spatial[d];
    if (p.type == DataType::kFloat16) {
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
