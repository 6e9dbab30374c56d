#include "ops/implementation_list.h"
#include "ops/scatter/problem.h"
#include "ops/scatter/scatter.h"

namespace anydml {
namespace {

constexpr FeatureLevel kNegativeIndices = 0x3000;

Status Lower(const OperatorDesc& desc, ScatterProblem problem, const LowerContext& context,
             LoweredOperator* out) {
  problem.input = *desc.tensor("InputTensor");
  problem.indices = *desc.tensor("IndicesTensor");
  problem.updates = *desc.tensor("UpdatesTensor");
  problem.output = *desc.tensor("OutputTensor");
  const DataType type = problem.indices.type;
  const bool is_signed = type == DataType::kInt32 || type == DataType::kInt64;
  problem.wraps = is_signed && context.level >= kNegativeIndices;
  if (SameLayout(problem.input, problem.output)) out->in_place = {{0, 0}};
  return ChooseKernel(problem, context, out);
}

Status LowerNd(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  ScatterProblem problem;
  problem.kind = ScatterProblem::Kind::kNd;
  problem.input_dimensions = desc.uint("InputDimensionCount");
  problem.indices_dimensions = desc.uint("IndicesDimensionCount");
  return Lower(desc, problem, context, out);
}

Status LowerElements(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  ScatterProblem problem;
  problem.kind = ScatterProblem::Kind::kElements;
  problem.axis = desc.uint("Axis");
  return Lower(desc, problem, context, out);
}

}  // namespace

constinit const Operator kScatterNdOperator = {109,          CheckScatterNd,          LowerNd,
                                               InferScatter, ScatterProblem::kFamily, kPlainTraits};
constinit const Operator kScatterElementsOperator = {94,           CheckScatterElements,    LowerElements,
                                                     InferScatter, ScatterProblem::kFamily, kPlainTraits};

namespace family::scatter {

void RegisterOperators(OperatorList* all) {
  all->Add(kScatterNdOperator);
  all->Add(kScatterElementsOperator);
}

}  // namespace family::scatter

}  // namespace anydml
