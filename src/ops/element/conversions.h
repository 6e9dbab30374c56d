// The programs of operators that convert between types, quantise, or do an optimiser's step. They have the
// signature of a row of operators.cc, but apply no function that the row would name.
#pragma once

#include "ops/element/builder.h"

namespace anydml {

// Moves elements bit for bit.
void BuildMove(ElementBuilder& b);

void BuildCast(ElementBuilder& b, ElementFunction);
void BuildQuantize(ElementBuilder& b, ElementFunction);
void BuildDequantize(ElementBuilder& b, ElementFunction);
void BuildQuantizedAdd(ElementBuilder& b, ElementFunction);
void BuildAdam(ElementBuilder& b, ElementFunction);

}  // namespace anydml
