// A copy of DML_GRAPH_DESC: nothing of the caller's is needed afterwards, not even the operators.
#pragma once

#include <DirectML.h>

#include "base/status.h"
#include "graph/description.h"

namespace anydml::dml {

class Device;

// Checks pointers, types and owners, but not whether edges fit their nodes.
Status ReadGraphDesc(const Device* device, const DML_GRAPH_DESC& desc, GraphDescription* out);

}  // namespace anydml::dml
