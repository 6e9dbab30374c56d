// Shared by the cases of operators that add.
#pragma once

#include <vector>

#include "support/case_maker.h"

namespace anydml::testing {

// Any subset of the dimensions, in any order.
std::vector<uint32_t> DrawAxes(const std::vector<uint32_t>& sizes, ByteSource& source);

// FLOAT32 or FLOAT16 numbers whose sums and products do not depend on the order beyond rounding: small
// integers, or numbers near 1; sometimes with infinities and NaNs.
Bytes NumbersToSum(const TensorDesc& tensor, CaseMaker& make);

}  // namespace anydml::testing
