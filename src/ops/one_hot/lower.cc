#include "ops/common/checks.h"
#include "ops/one_hot/problem.h"
#include "ops/implementation_list.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

constexpr FeatureLevel kNegativeIndices = 0x3000;

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const auto one_hot = OneHotDesc::From(desc);
  if (one_hot.axis >= one_hot.output.rank) {
    return InvalidArgument("ONE_HOT: Axis is ", one_hot.axis, " but OutputTensor.DimensionCount is ",
                           one_hot.output.rank, "; Axis must be in [0, ", one_hot.output.rank - 1, "]");
  }
  if (ElementCount(one_hot.values) < 2) {
    return InvalidArgument("ONE_HOT: ValuesTensor.Sizes is ", SizesToString(one_hot.values),
                           " but must have at least 2 elements, OffValue and OnValue");
  }
  Dimensions sizes = one_hot.output.sizes;
  sizes[one_hot.axis] = 1;
  return CheckSizes(desc, "IndicesTensor", sizes, "the sizes of OutputTensor, with 1 along Axis");
}

// The offset of element 1 along the fastest-changing dimension longer than 1.
uint64_t OnOffset(const TensorDesc& values) {
  uint32_t d = values.rank - 1;
  while (values.sizes[d] == 1) --d;
  return values.strides[d];
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto one_hot = OneHotDesc::From(desc);
  const uint64_t size = one_hot.output.sizes[one_hot.axis];
  const OneHotProblem problem = {one_hot.indices, one_hot.output, one_hot.axis,
                                 context.level >= kNegativeIndices ? size : 0, OnOffset(one_hot.values)};
  return ChooseKernel(problem, context, out);
}

// Only the output tells the axis' size.
Status Infer(OperatorDesc* desc) { return RequireOutput(*desc, "OutputTensor"); }

}  // namespace

LoopNest<3> OneHotNest(const OneHotProblem& p) {
  LoopNest<3> nest;
  for (uint32_t d = 0; d < p.output.rank; ++d) {
    const bool along = d == p.axis;
    nest.Append(p.output.sizes[d],
                {p.output.strides[d], along ? 0 : uint64_t{p.indices.strides[d]}, along ? 1u : 0u});
  }
  return SortedByStride(nest, kOneHotOutput);
}

const Operator& OneHotOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kOneHot),
                              Check,
                              Lower,
                              Infer,
                              OneHotProblem::kFamily,
                              kPlainTraits};
  return op;
}

namespace family::one_hot {

void RegisterOperators(OperatorList* all) { all->Add(OneHotOperator()); }

}  // namespace family::one_hot

}  // namespace anydml
