// Cases of the element-wise operators: any operator, types, layouts, attributes and optional tensors that the
// schema allows.
#pragma once

#include "schema/schema.h"
#include "support/case_maker.h"

namespace anydml::testing {

// `type` is one of ElementOperatorTypes(), and has a description at the latest feature level.
Case MakeElementCase(OperatorType type, CaseMaker& make);

// The same of given sizes, and of this type where the first input allows it.
Case MakeElementCase(OperatorType type, DataType first, const std::vector<uint32_t>& sizes, CaseMaker& make);

// Numbers for a tensor: specials, whole numbers, small ones, or any bits.
Bytes ElementContent(const TensorDesc& tensor, CaseMaker& make);

}  // namespace anydml::testing
