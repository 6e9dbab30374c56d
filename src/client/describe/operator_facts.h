// The library's knowledge about operators beyond the schema, through anydml.h.
#pragma once

#include <string>
#include <vector>

#include <DirectML.h>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::client {

// Fastest first.
std::vector<std::string> ImplementationsOf(const OperatorSchema& schema);

// The result of CreateOperator on a device of this feature level.
Status CheckOperator(const DML_OPERATOR_DESC& desc, FeatureLevel level);

// Sets packed tensors for outputs without sizes.
Status InferOutputs(OperatorDesc* desc);

}  // namespace anydml::client
