// CASTs to a type that has all values of another one, and back.
#pragma once

#include "graph/graph.h"

namespace anydml {

// The second of two such CASTs becomes an ELEMENT_WISE_IDENTITY of what the first one reads; the first one
// goes when nobody else wants it.
void RemoveCastPairs(Graph* graph);

}  // namespace anydml
