// Error bounds for results of operators for which a single bound would be wrong, because operands determine
// how much cancels and how much of an input's error is passed on.
#pragma once

#include <memory>

#include "kernel/kernel.h"
#include "schema/operator_desc.h"

namespace anydml {

// Null if Exactness (exactness.h) suffices. Otherwise a kernel that runs on the host, takes the operator's
// inputs, and writes an error bound for each element of its outputs: a double, at the element's offset. A
// result is correct if it is within this bound or within the bound that its implementation declares.
std::unique_ptr<const Kernel> CreateErrors(const OperatorDesc& desc);

}  // namespace anydml
