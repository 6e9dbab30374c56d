// Elements of any data type as numbers, for arithmetic that does not care.
#pragma once

#include <cstddef>

#include "schema/operator_desc.h"

namespace anydml::tools {

// 64-bit integers may be rounded.
double ElementToDouble(DataType type, const std::byte* element);

// Integers are rounded down and held to the type's range.
Scalar ElementFromDouble(DataType type, double number);

}  // namespace anydml::tools
