// Shared by the cases of sums of products.
#pragma once

#include "support/case_maker.h"

namespace anydml::testing {

// Multiples of 1/8 up to 1, whose products are summed without rounding: implementations that differ in more
// than the order of additions are detected.
Bytes NumbersThatAddUp(const TensorDesc& tensor, CaseMaker& make);

void SetField(OperatorDesc* desc, const char* name, FieldValue value);

}  // namespace anydml::testing
