// Shared by the cases of element-wise operators and those of other families.
#pragma once

#include "support/case_maker.h"

namespace anydml::testing {

// Numbers for a tensor: special values, integers, small numbers, or any bits.
Bytes ElementContent(const TensorDesc& tensor, CaseMaker& make);

}  // namespace anydml::testing
