// TOP_K and TOP_K1: the K largest or smallest elements along an axis, with their indices. TOP_K is TOP_K1
// with direction DECREASING.
#pragma once

#include "ops/operator.h"

namespace anydml {

extern const Operator kTopKOperator;
extern const Operator kTopK1Operator;

Status CheckTopK(const OperatorDesc& desc, FeatureLevel level);
Status InferTopK(OperatorDesc* desc);

}  // namespace anydml
