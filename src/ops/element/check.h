// Rules for element-wise operators beyond the schema's tables.
#pragma once

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml {

Status CheckElementOperator(const OperatorDesc& desc, FeatureLevel level);

}  // namespace anydml
