#include <array>
#include <cmath>

#include "ops/common/checks.h"
#include "ops/implementation_list.h"
#include "ops/scan/nonzero.h"
#include "ops/scan/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

Status Check(const OperatorDesc& desc, FeatureLevel) { return CheckAxis(desc); }

template <typename Desc>
ScanProblem ProblemOf(const Desc& desc) {
  ScanProblem problem;
  problem.input = desc.input;
  problem.output = desc.output;
  problem.axis = desc.axis;
  problem.reverse = desc.axis_direction == AxisDirection::kDecreasing;
  return problem;
}

Status Lower(const ScanProblem& problem, const LowerContext& context, LoweredOperator* out) {
  if (SameLayout(problem.input, problem.output)) out->in_place = {{0, 0}};
  return ChooseKernel(problem, context, out);
}

Status LowerSummation(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto sum = CumulativeSummationDesc::From(desc);
  ScanProblem problem = ProblemOf(sum);
  problem.exclusive = sum.has_exclusive_sum;
  return Lower(problem, context, out);
}

Status LowerProduct(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto product = CumulativeProductDesc::From(desc);
  ScanProblem problem = ProblemOf(product);
  problem.multiplies = true;
  problem.exclusive = product.has_exclusive_product;
  return Lower(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* input = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  const TensorDesc like = *input;
  FillTensor(desc, "OutputTensor", like.type, like.sizes, like.rank);
  return {};
}

}  // namespace

ScanLoops MakeScanLoops(const ScanProblem& p) {
  ScanLoops loops;
  for (uint32_t d = 0; d < p.output.rank; ++d) {
    if (d == p.axis) continue;
    loops.sequences.Append(p.output.sizes[d], {p.input.strides[d], p.output.strides[d]});
  }
  loops.sequences = SortedByStride(loops.sequences, ScanLoops::kOutput);
  loops.along = {p.output.sizes[p.axis], {p.input.strides[p.axis], p.output.strides[p.axis]}};
  return loops;
}

bool NeighboursAreBeside(const ScanLoops& loops) {
  const LoopNest<2>& sequences = loops.sequences;
  return sequences.rank > 0 && sequences.loops[sequences.rank - 1].strides[ScanLoops::kOutput] <
                                   loops.along.strides[ScanLoops::kOutput];
}

Exactness ScanBound(const ScanProblem& problem) {
  const bool is_half = problem.output.type == DataType::kFloat16;
  if (!is_half && problem.output.type != DataType::kFloat32) return {};
  // Twice n * 2^-24, because the reference rounds, too.
  const double rounding = problem.output.sizes[problem.axis] * 0x1p-23;
  return {.float16_ulps = 1, .relative = rounding + (is_half ? 0x1p-10 : 0)};
}

std::span<const Operator> ScanOperators() {
  static const std::array<Operator, 2> operators = {{
      {static_cast<uint32_t>(OperatorType::kCumulativeSummation), Check, LowerSummation, Infer,
       ScanProblem::kFamily, kPlainTraits},
      {static_cast<uint32_t>(OperatorType::kCumulativeProduct), Check, LowerProduct, Infer,
       ScanProblem::kFamily, kPlainTraits},
  }};
  return operators;
}

namespace family::scan {

void RegisterOperators(OperatorList* all) {
  all->Add(ScanOperators());
  all->Add(NonzeroCoordinatesOperator());
}

}  // namespace family::scan

}  // namespace anydml
