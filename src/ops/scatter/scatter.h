// SCATTER_ND and SCATTER_ELEMENTS (alias SCATTER): a copy of the input in which selected elements or slices
// are replaced by updates.
#pragma once

#include "ops/operator.h"

namespace anydml {

extern const Operator kScatterNdOperator;
extern const Operator kScatterElementsOperator;

Status CheckScatterNd(const OperatorDesc& desc, FeatureLevel level);
Status CheckScatterElements(const OperatorDesc& desc, FeatureLevel level);
Status InferScatter(OperatorDesc* desc);

}  // namespace anydml
