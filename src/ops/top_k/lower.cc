#include "ops/implementation_list.h"
#include "ops/top_k/problem.h"
#include "ops/top_k/top_k.h"

namespace anydml {
namespace {

constexpr uint32_t kDecreasing = 1;  // DML_AXIS_DIRECTION_DECREASING

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  TopKProblem problem;
  problem.input = *desc.tensor("InputTensor");
  problem.value = *desc.tensor("OutputValueTensor");
  problem.index = *desc.tensor("OutputIndexTensor");
  problem.axis = desc.uint("Axis");
  const bool has_direction = FindField(*desc.schema, "AxisDirection") >= 0;
  problem.largest = !has_direction || desc.uint("AxisDirection") == kDecreasing;
  return ChooseKernel(problem, context, out);
}

}  // namespace

constinit const Operator kTopKOperator = {71,          CheckTopK, Lower, InferTopK, TopKProblem::kFamily,
                                          kPlainTraits};
constinit const Operator kTopK1Operator = {112,         CheckTopK, Lower, InferTopK, TopKProblem::kFamily,
                                           kPlainTraits};

namespace family::top_k {

void RegisterOperators(OperatorList* all) {
  all->Add(kTopKOperator);
  all->Add(kTopK1Operator);
}

}  // namespace family::top_k

}  // namespace anydml
