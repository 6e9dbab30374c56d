// The kernel of a graph's node.
#pragma once

#include "graph/graph.h"

namespace anydml {

Status LowerNode(GraphNode& node, LowerContext context, LoweredOperator* out);

}  // namespace anydml
