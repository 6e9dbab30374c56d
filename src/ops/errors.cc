#include "ops/errors.h"

#include "ops/lrn/problem.h"
#include "ops/recurrent/problem.h"
#include "schema/operator_type.generated.h"

namespace anydml {

std::unique_ptr<const Kernel> CreateErrors(const OperatorDesc& desc) {
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kLocalResponseNormalization:
    case OperatorType::kLocalResponseNormalizationGrad:
      return CreateLrnErrors(desc);
    case OperatorType::kRnn:
    case OperatorType::kLstm:
    case OperatorType::kGru:
      return CreateRecurrentErrors(desc);
    default:
      return nullptr;
  }
}

}  // namespace anydml
