#include "ops/common/checks.h"
#include "ops/convolution/layout_preference.h"
#include "ops/convolution/shape.h"
#include "ops/element/builder.h"
#include "ops/implementation_list.h"
#include "ops/work.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

ConvolutionFields FieldsOf(const ConvolutionDesc& desc) {
  return {"CONVOLUTION",
          desc.input,
          desc.filter,
          desc.strides,
          desc.dilations,
          desc.start_padding,
          desc.end_padding,
          desc.output_padding,
          desc.group_count,
          desc.direction == ConvolutionDirection::kBackward,
          desc.mode == ConvolutionMode::kConvolution};
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = ConvolutionDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckConvolution(FieldsOf(typed), typed.output));
  if (typed.bias == nullptr) return {};
  Dimensions sizes;
  sizes.fill(1);
  sizes[1] = typed.output.sizes[1];
  return CheckSizes(desc, "BiasTensor", sizes, "it has one number for each output channel");
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(ConvolutionProblemOf(desc, ConvolutionDesc::From(desc).output), context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc *input = nullptr, *filter = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "FilterTensor", &filter));
  OperatorDesc complete = *desc;  // with an output, so that it can be read as a whole
  FillTensor(&complete, "OutputTensor", input->type, input->sizes, input->rank);
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(InferConvolution(FieldsOf(ConvolutionDesc::From(complete)), &sizes));
  FillTensor(desc, "OutputTensor", input->type, sizes, input->rank);
  return {};
}

}  // namespace

ConvolutionProblem ConvolutionProblemOf(const OperatorDesc& desc, const TensorDesc& output) {
  const auto typed = ConvolutionDesc::From(desc);
  ConvolutionProblem problem;
  problem.type = typed.input.type;
  problem.shape = ShapeOf(FieldsOf(typed), output);
  problem.filter_is_owned = typed.filter.owned_by_dml;
  if (typed.bias != nullptr) problem.bias = typed.bias->strides[1];
  if (typed.fused_activation != nullptr) {
    AppendActivation(*typed.fused_activation, &problem.activation, problem.activation.NewRegister());
  }
  return problem;
}

const Operator& ConvolutionOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kConvolution),
                              Check,
                              Lower,
                              Infer,
                              ConvolutionProblem::kFamily,
                              kPlainTraits.With(LayoutOfConvolution).With(WorkOfConvolution)};
  return op;
}

namespace family::convolution {

void RegisterOperators(OperatorList* all) { all->Add(ConvolutionOperator()); }

}  // namespace family::convolution

}  // namespace anydml
