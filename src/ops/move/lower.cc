#include "ops/move/check.h"
#include "ops/move/maps.h"
#include "ops/implementation_list.h"
#include "ops/move/reverse.h"
#include "ops/move/value_scale.h"
#include "ops/work.h"

namespace anydml {
namespace {

using Type = OperatorType;

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(BuildMoveProblem(desc), context, out);
}

OperatorTraits TraitsOf(Type type) {
  const OperatorTraits traits = kPlainTraits.With(LayoutOfAll).With(Strides::kDoNotMatter);
  switch (type) {
    case Type::kDepthToSpace:
    case Type::kDepthToSpace1:
    case Type::kSpaceToDepth:
    case Type::kSpaceToDepth1:
    case Type::kSliceGrad:
      return traits;  // nobody has measured their work
    default:
      return traits.With(WorkOfElements);
  }
}

constexpr Type kTypes[] = {Type::kSlice,         Type::kSplit,         Type::kJoin,      Type::kPadding,
                           Type::kSpaceToDepth,  Type::kDepthToSpace,  Type::kTile,      Type::kSlice1,
                           Type::kDepthToSpace1, Type::kSpaceToDepth1, Type::kSliceGrad, Type::kPadding1};

}  // namespace

std::span<const Operator> MoveOperators() {
  static const std::vector<Operator> operators = [] {
    std::vector<Operator> all;
    for (const Type type : kTypes) {
      all.push_back(
          {static_cast<uint32_t>(type), CheckMove, Lower, InferMove, MoveProblem::kFamily, TraitsOf(type)});
    }
    return all;
  }();
  return operators;
}

namespace family::move {

void RegisterOperators(OperatorList* all) {
  all->Add(MoveOperators());
  all->Add(ReverseSubsequencesOperator());
  all->Add(ValueScaleOperator());
}

}  // namespace family::move

}  // namespace anydml
