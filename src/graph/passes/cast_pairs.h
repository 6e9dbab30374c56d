// Removes CASTs to a type that represents all values of the source type, followed by the CAST back.
#pragma once

#include "graph/graph.h"

namespace anydml {

// The second of two such CASTs becomes an ELEMENT_WISE_IDENTITY of the first one's input; the first is
// removed if nothing else reads it.
void RemoveCastPairs(Graph* graph);

}  // namespace anydml
