#include "ops/identity/identity.h"
#include "ops/operator.h"
#include "ops/scatter/scatter.h"
#include "ops/top_k/top_k.h"

namespace anydml {
namespace {

constexpr const Operator* kOperators[] = {
    &kIdentityOperator,         // ELEMENT_WISE_IDENTITY
    &kTopKOperator,             // TOP_K
    &kScatterElementsOperator,  // SCATTER_ELEMENTS, SCATTER
    &kScatterNdOperator,        // SCATTER_ND
    &kTopK1Operator,            // TOP_K1
};

}  // namespace

Status LowerOperator(const Operator& op, const OperatorDesc& desc, const LowerContext& context,
                     LoweredOperator* out) {
  const Status status = op.lower(desc, context, out);
  if (status.ok()) return status;
  return Status(status.code(), StrCat(desc.schema->name, ": ", status.message()));
}

std::span<const Operator* const> ImplementedOperators() { return kOperators; }

const Operator* FindImplementation(uint32_t type) {
  for (const Operator* candidate : kOperators) {
    if (candidate->type == type) return candidate;
  }
  return nullptr;
}

}  // namespace anydml
