#include <vector>

#include "ops/dynamic_quantize/problem.h"
#include "ops/element/element.h"
#include "ops/operator.h"
#include "ops/reduce/problem.h"
#include "ops/scatter/scatter.h"
#include "ops/softmax/problem.h"
#include "ops/top_k/top_k.h"

namespace anydml {
namespace {

std::vector<const Operator*> CollectOperators() {
  std::vector<const Operator*> operators = {
      &kTopKOperator,              // TOP_K
      &kScatterElementsOperator,   // SCATTER_ELEMENTS, SCATTER
      &kScatterNdOperator,         // SCATTER_ND
      &kTopK1Operator,             // TOP_K1
      &DynamicQuantizeOperator(),  // DYNAMIC_QUANTIZE_LINEAR
  };
  for (const Operator& op : ElementOperators()) operators.push_back(&op);
  for (const Operator& op : ReduceOperators()) operators.push_back(&op);
  for (const Operator& op : SoftmaxOperators()) operators.push_back(&op);
  return operators;
}

// By DML_OPERATOR_TYPE; null where there is none.
const std::vector<const Operator*>& ByType() {
  static const std::vector<const Operator*> by_type = [] {
    std::vector<const Operator*> table(AllOperators().size() + 1);
    for (const Operator* op : ImplementedOperators()) table.at(op->type) = op;
    return table;
  }();
  return by_type;
}

}  // namespace

Status LowerOperator(const Operator& op, const OperatorDesc& desc, const LowerContext& context,
                     LoweredOperator* out) {
  const Status status = op.lower(desc, context, out);
  if (status.ok()) return {};
  return Status(status.code(), StrCat(desc.schema->name, ": ", status.message()));
}

std::span<const Operator* const> ImplementedOperators() {
  static const std::vector<const Operator*> operators = CollectOperators();
  return operators;
}

const Operator* FindImplementation(uint32_t type) {
  const auto& by_type = ByType();
  return type < by_type.size() ? by_type[type] : nullptr;
}

}  // namespace anydml
