// The rules for element-wise operators that the schema's tables do not say.
#pragma once

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml {

Status CheckElementOperator(const OperatorDesc& desc, FeatureLevel level);

}  // namespace anydml
