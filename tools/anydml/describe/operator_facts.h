// What the library knows about operators beyond the schema, through anydml.h.
#pragma once

#include <string>
#include <vector>

#include <DirectML.h>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::tools {

// Fastest first.
std::vector<std::string> ImplementationsOf(const OperatorSchema& schema);

// What CreateOperator would say on a device of this feature level.
Status CheckOperator(const DML_OPERATOR_DESC& desc, FeatureLevel level);

// Puts packed tensors where outputs have no sizes.
Status InferOutputs(OperatorDesc* desc);

}  // namespace anydml::tools
