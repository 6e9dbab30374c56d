#include "ops/move/value_scale.h"

#include <cmath>

#include "base/half.h"
#include "ops/common/checks.h"
#include "ops/common/coordinates.h"
#include "ops/element/operators.h"
#include "ops/implementation_list.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = ValueScale2dDesc::From(desc);
  const size_t channels = typed.bias.size();
  if (channels != 1 && channels != 3) {
    return InvalidArgument(desc.schema->name, ": ChannelCount is ", channels, " but must be 1 or 3");
  }
  if (typed.input.sizes[1] == channels) return {};
  return InvalidArgument(desc.schema->name, ": ChannelCount is ", channels, " but must be ",
                         typed.input.sizes[1], ", that of InputTensor.Sizes[1]");
}

// ACTIVATION_LINEAR for one channel.
ElementProblem ChannelProblem(const ValueScale2dDesc& desc, float bias) {
  TensorDesc input = desc.input, output = desc.output;
  input.sizes[1] = output.sizes[1] = 1;
  OperatorDesc linear;
  linear.schema = FindOperator(OperatorType::kActivationLinear);
  linear.fields = {input, output, desc.scale, bias};
  return BuildElementProblem(linear);
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = ValueScale2dDesc::From(desc);
  ValueScaleProblem problem = {
      typed.input, typed.output, typed.scale, {typed.bias.begin(), typed.bias.end()}, {}};
  for (const float bias : typed.bias) problem.channels.push_back(ChannelProblem(typed, bias));
  return ChooseKernel(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  FillTensor(desc, "OutputTensor", input.type, input.sizes, input.rank);
  return {};
}

class ValueScaleReference final : public Kernel {
 public:
  explicit ValueScaleReference(const ValueScaleProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const TensorDesc &input = problem_.input, &output = problem_.output;
    const bool is_half = input.type == DataType::kFloat16;
    ForEachCoordinate(input.sizes, input.rank, [&](const Dimensions& at) {
      const std::byte* const data = arguments.inputs[0].data;
      const uint64_t from = ElementOffset(input, at), to = ElementOffset(output, at);
      const float x = is_half ? ToFloat(Load<Half>(data, from)) : Load<float>(data, from);
      const float product = x * problem_.scale;
      float y = product + problem_.bias[at[1]];
      if (std::isnan(y)) y = std::bit_cast<float>(0x7FC00000u);
      if (is_half) {
        Store(arguments.outputs[0].data, to, ToHalf(y));
      } else {
        Store(arguments.outputs[0].data, to, y);
      }
    });
    return {};
  }

 private:
  ValueScaleProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateValueScaleReference(const ValueScaleProblem& problem, const LowerContext&,
                                                        std::string*) {
  return std::make_unique<ValueScaleReference>(problem);
}

const Operator& ValueScaleOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kValueScale2d),
                              Check,
                              Lower,
                              Infer,
                              ValueScaleProblem::kFamily,
                              kPlainTraits};
  return op;
}

}  // namespace anydml
