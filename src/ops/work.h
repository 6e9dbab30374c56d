// How long operators take, estimated from their sizes.
#pragma once

#include <cstdint>

#include "ops/operator.h"

namespace anydml {

// WorkEstimate::work_bytes of a kernel on the CPU: the kernel's own estimate, or the operator's
// (OperatorTraits::work_bytes). Estimates are generous, since they serve to recognise work that is so short
// that it runs within the call. Unknown for the reference. `desc` may be null.
uint64_t WorkOf(const LoweredOperator& lowered, const OperatorDesc* desc);

// For OperatorTraits::work_bytes.
double WorkOfElements(const OperatorDesc& desc);  // each element is moved or computed by itself
double WorkOfSoftmax(const OperatorDesc& desc);
double WorkOfReduction(const OperatorDesc& desc);
double WorkOfProduct(const OperatorDesc& desc);
double WorkOfIntegerProduct(const OperatorDesc& desc);
double WorkOfConvolution(const OperatorDesc& desc);
double WorkOfIntegerConvolution(const OperatorDesc& desc);

}  // namespace anydml
