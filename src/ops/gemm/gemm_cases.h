// What the cases of sums of products share.
#pragma once

#include "support/case_maker.h"

namespace anydml::testing {

// Multiples of 1/8 up to 1, whose products add up without rounding: implementations that differ in anything
// but the order of additions are found out.
Bytes NumbersThatAddUp(const TensorDesc& tensor, CaseMaker& make);

void SetField(OperatorDesc* desc, const char* name, FieldValue value);

}  // namespace anydml::testing
