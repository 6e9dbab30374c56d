#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/dynamic_quantize/problem.h"

namespace anydml {
namespace {

class DynamicQuantizeReference final : public Kernel {
 public:
  explicit DynamicQuantizeReference(const DynamicQuantizeProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const TensorDesc& input = problem_.input;
    const auto element = [&](const Dimensions& at) {
      const std::byte* data = arguments.inputs[0].data;
      const uint64_t offset = ElementOffset(input, at);
      return input.type == DataType::kFloat16 ? ToFloat(Load<Half>(data, offset)) : Load<float>(data, offset);
    };
    Range range;
    ForEachCoordinate(input.sizes, input.rank, [&](const Dimensions& at) {
      const float x = element(at);
      if (x < range.min) range.min = x;
      if (x > range.max) range.max = x;
    });
    const QuantizationParameters parameters = ParametersOf(range, problem_.quantized);
    const float low = LowestQuantized(problem_.quantized);
    Store<float>(arguments.outputs[1].data, 0, parameters.scale);
    arguments.outputs[2].data[0] = static_cast<std::byte>(static_cast<int32_t>(parameters.zero_point));
    const ElementOperand& output = problem_.quantize.outputs[0];
    ForEachCoordinate(input.sizes, input.rank, [&](const Dimensions& at) {
      const float quotient = element(at) / parameters.scale;
      const float whole = std::isnan(quotient) ? 0 : std::nearbyint(quotient);
      const float quantized = std::clamp(whole + parameters.zero_point, low, low + 255);
      uint64_t offset = 0;
      for (uint32_t d = 0; d < input.rank; ++d) offset += at[d] * output.strides[d];
      arguments.outputs[0].data[offset] = static_cast<std::byte>(static_cast<int32_t>(quantized));
    });
    return {};
  }

 private:
  DynamicQuantizeProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateDynamicQuantizeReference(const DynamicQuantizeProblem& problem,
                                                             const LowerContext&, std::string*) {
  return std::make_unique<DynamicQuantizeReference>(problem);
}

}  // namespace anydml
