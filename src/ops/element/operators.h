// Which operators are element programs, and their problems.
#pragma once

#include <span>

#include "ops/element/problem.h"
#include "schema/operator_desc.h"

namespace anydml {

std::span<const OperatorType> ElementOperatorTypes();

// The description must have been checked.
ElementProblem BuildElementProblem(const OperatorDesc& desc);

}  // namespace anydml
