// Elements of any data type as numbers, for arithmetic that does not care.
#pragma once

#include <cstddef>

#include "schema/operator_desc.h"

namespace anydml::tools {

// One element of many. 64-bit integers may be rounded.
double ElementToDouble(DataType type, const std::byte* data, uint64_t index);
// Of a scalar, in which elements of four bits have a byte.
double ScalarToDouble(DataType type, const Scalar& scalar);

// Integers are rounded down and held to the type's range.
Scalar ScalarFromDouble(DataType type, double number);

}  // namespace anydml::tools
