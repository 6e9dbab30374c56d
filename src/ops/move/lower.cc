#include "ops/move/check.h"
#include "ops/move/maps.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

using Type = OperatorType;

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(BuildMoveProblem(desc), context, out);
}

constexpr Type kTypes[] = {Type::kSlice,         Type::kSplit,         Type::kJoin,      Type::kPadding,
                           Type::kSpaceToDepth,  Type::kDepthToSpace,  Type::kTile,      Type::kSlice1,
                           Type::kDepthToSpace1, Type::kSpaceToDepth1, Type::kSliceGrad, Type::kPadding1};

}  // namespace

std::span<const Operator> MoveOperators() {
  static const std::vector<Operator> operators = [] {
    std::vector<Operator> all;
    for (const Type type : kTypes) {
      all.push_back({static_cast<uint32_t>(type), CheckMove, Lower, InferMove, MoveProblem::kFamily});
    }
    return all;
  }();
  return operators;
}

}  // namespace anydml
