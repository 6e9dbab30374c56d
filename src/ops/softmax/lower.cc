#include "ops/common/checks.h"
#include "ops/implementation_list.h"
#include "ops/softmax/problem.h"
#include "ops/work.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

struct Row {
  OperatorType type;
  SoftmaxKind kind;
  bool has_axes;
};

constexpr Row kRows[] = {
    {OperatorType::kActivationSoftmax, SoftmaxKind::kSoftmax, false},
    {OperatorType::kActivationSoftmax1, SoftmaxKind::kSoftmax, true},
    {OperatorType::kActivationLogSoftmax, SoftmaxKind::kLogSoftmax, false},
    {OperatorType::kActivationLogSoftmax1, SoftmaxKind::kLogSoftmax, true},
    {OperatorType::kActivationHardmax, SoftmaxKind::kHardmax, false},
    {OperatorType::kActivationHardmax1, SoftmaxKind::kHardmax, true},
};

const Row& RowOf(const OperatorDesc& desc) {
  for (const Row& row : kRows) {
    if (static_cast<uint32_t>(row.type) == desc.schema->type) return row;
  }
  return kRows[0];
}

std::span<const uint32_t> AxesOf(const OperatorDesc& desc) {
  const auto* const axes = std::get_if<std::vector<uint32_t>>(&desc.fields[FindField(*desc.schema, "Axes")]);
  return axes != nullptr ? std::span<const uint32_t>(*axes) : std::span<const uint32_t>();
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  if (RowOf(desc).has_axes) return CheckAxes(desc, AxesOf(desc));
  const TensorDesc& input = *desc.tensor("InputTensor");
  uint32_t leading = 0;
  while (leading < input.rank && input.sizes[leading] == 1) ++leading;
  if (input.rank - leading <= 2) return {};
  return InvalidArgument(desc.schema->name, ": InputTensor.Sizes is ", SizesToString(input),
                         " but all but the last two must be 1");
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const Row& row = RowOf(desc);
  SoftmaxProblem problem = {row.kind, *desc.tensor("InputTensor"), *desc.tensor("OutputTensor")};
  problem.axes = row.has_axes ? ToAxisSet(AxesOf(desc)) : AxisSet{1} << (problem.input.rank - 1);
  return ChooseKernel(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  FillTensor(desc, "OutputTensor", input.type, input.sizes, input.rank);
  return {};
}

Operator Make(const Row& row) {
  OperatorTraits traits = kPlainTraits.With(row.has_axes ? RowUse::kInBlocks : RowUse::kTogether);
  if (row.kind != SoftmaxKind::kHardmax) traits = traits.With(WorkOfSoftmax);
  return {static_cast<uint32_t>(row.type), Check, Lower, Infer, SoftmaxProblem::kFamily, traits};
}

}  // namespace

std::span<const Operator> SoftmaxOperators() {
  static const Operator operators[] = {Make(kRows[0]), Make(kRows[1]), Make(kRows[2]),
                                       Make(kRows[3]), Make(kRows[4]), Make(kRows[5])};
  return operators;
}

namespace family::softmax {

void RegisterOperators(OperatorList* all) { all->Add(SoftmaxOperators()); }

}  // namespace family::softmax

}  // namespace anydml
