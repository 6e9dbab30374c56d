#include <vector>

#include "ops/common/checks.h"
#include "ops/implementation_list.h"
#include "ops/reduce/problem.h"
#include "ops/work.h"

namespace anydml {
namespace {

ReduceProblem ProblemOf(const OperatorDesc& desc) {
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kArgmin: {
      const auto typed = ArgminDesc::From(desc);
      return {ReduceFunction::kArgmin, typed.axis_direction == AxisDirection::kDecreasing, typed.input,
              typed.output, ToAxisSet(typed.axes)};
    }
    case OperatorType::kArgmax: {
      const auto typed = ArgmaxDesc::From(desc);
      return {ReduceFunction::kArgmax, typed.axis_direction == AxisDirection::kDecreasing, typed.input,
              typed.output, ToAxisSet(typed.axes)};
    }
    default: {
      const auto typed = ReduceDesc::From(desc);
      return {typed.function, false, typed.input, typed.output, ToAxisSet(typed.axes)};
    }
  }
}

std::span<const uint32_t> AxesOf(const OperatorDesc& desc) {
  const auto* const axes = std::get_if<std::vector<uint32_t>>(&desc.fields[FindField(*desc.schema, "Axes")]);
  return axes != nullptr ? std::span<const uint32_t>(*axes) : std::span<const uint32_t>();
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  ANYDML_RETURN_IF_ERROR(CheckAxes(desc, AxesOf(desc)));
  return CheckSizes(desc, "OutputTensor",
                    WithoutAxes(desc.tensor("InputTensor")->sizes, ToAxisSet(AxesOf(desc))),
                    "InputTensor's, with 1 along Axes");
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(ProblemOf(desc), context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  ANYDML_RETURN_IF_ERROR(CheckAxes(*desc, AxesOf(*desc)));
  const bool is_reduce = desc->schema->type == static_cast<uint32_t>(OperatorType::kReduce);
  const bool is_arg = !is_reduce || IsArg(static_cast<ReduceFunction>(desc->uint("Function")));
  FillTensor(desc, "OutputTensor", is_arg ? DataType::kUInt32 : input.type,
             WithoutAxes(input.sizes, ToAxisSet(AxesOf(*desc))), input.rank);
  return {};
}

Operator Make(OperatorType type) {
  OperatorTraits traits = kPlainTraits.With(WorkOfReduction);
  if (type == OperatorType::kReduce) traits = traits.With(AnyLayout).With(RowUse::kInBlocks);
  return {static_cast<uint32_t>(type), Check, Lower, Infer, ReduceProblem::kFamily, traits};
}

}  // namespace

std::span<const Operator> ReduceOperators() {
  static const Operator operators[] = {Make(OperatorType::kReduce), Make(OperatorType::kArgmin),
                                       Make(OperatorType::kArgmax)};
  return operators;
}

namespace family::reduce {

void RegisterOperators(OperatorList* all) { all->Add(ReduceOperators()); }

}  // namespace family::reduce

}  // namespace anydml
