#include "ops/common/checks.h"
#include "ops/dynamic_quantize/problem.h"
#include "ops/element/operators.h"
#include "ops/implementation_list.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

Status Check(const OperatorDesc& desc, FeatureLevel) {
  ANYDML_RETURN_IF_ERROR(CheckOneElement(desc, "OutputScaleTensor"));
  ANYDML_RETURN_IF_ERROR(CheckOneElement(desc, "OutputZeroPointTensor"));
  return CheckSizes(desc, "OutputTensor", desc.tensor("InputTensor")->sizes, "it is InputTensor, quantised");
}

// The second pass: ELEMENT_WISE_QUANTIZE_LINEAR with the results of the first.
ElementProblem QuantizeProblem(const DynamicQuantizeLinearDesc& desc) {
  const auto broadcast = [&](const TensorDesc& one) {
    TensorDesc tensor = desc.input;
    tensor.type = one.type;
    tensor.strides = {};
    return tensor;
  };
  OperatorDesc quantize;
  quantize.schema = FindOperator(OperatorType::kElementWiseQuantizeLinear);
  quantize.fields = {desc.input, broadcast(desc.output_scale), broadcast(desc.output_zero_point),
                     desc.output};
  return BuildElementProblem(quantize);
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = DynamicQuantizeLinearDesc::From(desc);
  const DynamicQuantizeProblem problem = {typed.input, typed.output.type, QuantizeProblem(typed)};
  return ChooseKernel(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  FillTensor(desc, "OutputTensor", DataType::kUInt8, input.sizes, input.rank);
  Dimensions ones;
  ones.fill(1);
  FillTensor(desc, "OutputScaleTensor", DataType::kFloat32, ones, input.rank);
  FillTensor(desc, "OutputZeroPointTensor", desc->tensor("OutputTensor")->type, ones, input.rank);
  return {};
}

}  // namespace

const Operator& DynamicQuantizeOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kDynamicQuantizeLinear),
                              Check,
                              Lower,
                              Infer,
                              DynamicQuantizeProblem::kFamily,
                              kPlainTraits};
  return op;
}

namespace family::dynamic_quantize {

void RegisterOperators(OperatorList* all) { all->Add(DynamicQuantizeOperator()); }

}  // namespace family::dynamic_quantize

}  // namespace anydml
