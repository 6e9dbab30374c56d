// Elements of any data type as double, for arithmetic independent of the type.
#pragma once

#include <cstddef>

#include "schema/operator_desc.h"

namespace anydml::client {

// One element of many. 64-bit integers may be rounded.
double ElementToDouble(DataType type, const std::byte* data, uint64_t index);
// From a scalar, in which 4-bit elements take a byte.
double ScalarToDouble(DataType type, const Scalar& scalar);

// Integers are rounded down and clamped to the type's range.
Scalar ScalarFromDouble(DataType type, double number);

}  // namespace anydml::client
