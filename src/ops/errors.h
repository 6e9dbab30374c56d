// How far results may be from the reference's where no number for a whole operator would be true: where
// operands decide what cancels, and how much of an error is handed on.
#pragma once

#include <memory>

#include "kernel/kernel.h"
#include "schema/operator_desc.h"

namespace anydml {

// Null where Exactness (exactness.h) says all there is to say. Otherwise a kernel that runs on the host,
// takes the operator's inputs, and writes for each element of its outputs how far it may be off: a double, at
// the element's offset. An implementation's result is right within that or within what it declares.
std::unique_ptr<const Kernel> CreateErrors(const OperatorDesc& desc);

}  // namespace anydml
