#include "dml/operator.h"

#include <utility>

#include "schema/validate.h"

namespace anydml::dml {

Status CheckOperatorDesc(const DML_OPERATOR_DESC* desc, FeatureLevel level, OperatorDesc* out,
                         const anydml::Operator** implementation) {
  if (desc == nullptr) return InvalidArgument("IDMLDevice::CreateOperator: desc is null");
  ANYDML_RETURN_IF_ERROR(ReadOperatorDesc(desc, level, out));
  ANYDML_RETURN_IF_ERROR(ValidateOperatorDesc(*out, level));
  *implementation = FindImplementation(out->schema->type);
  return (*implementation)->check(*out, level);
}

Operator::Operator(Device* device, OperatorDesc desc, const anydml::Operator& implementation)
    : DeviceChild(device), desc_(std::move(desc)), implementation_(implementation) {}

}  // namespace anydml::dml
