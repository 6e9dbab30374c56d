// What the cases of element-wise operators share with those of other families.
#pragma once

#include "support/case_maker.h"

namespace anydml::testing {

// Numbers for a tensor: specials, whole numbers, small ones, or any bits.
Bytes ElementContent(const TensorDesc& tensor, CaseMaker& make);

}  // namespace anydml::testing
