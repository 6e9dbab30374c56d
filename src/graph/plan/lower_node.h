// Lowers a graph's node to its kernel.
#pragma once

#include "graph/graph.h"

namespace anydml {

Status LowerNode(GraphNode& node, LowerContext context, LoweredOperator* out);

}  // namespace anydml
