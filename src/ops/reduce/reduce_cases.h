// What the cases of operators that add have in common.
#pragma once

#include <vector>

#include "support/case_maker.h"

namespace anydml::testing {

// Any subset of the dimensions, in or against their order.
std::vector<uint32_t> DrawAxes(const std::vector<uint32_t>& sizes, ByteSource& source);

// FLOAT32 or FLOAT16 numbers whose sums and products do not depend on the order beyond rounding: small whole
// ones, or some near 1; now and then infinities and NaNs among them.
Bytes NumbersToSum(const TensorDesc& tensor, CaseMaker& make);

}  // namespace anydml::testing
