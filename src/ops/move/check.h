// The rules of the moving operators that the schema's tables cannot say, and the sizes of their outputs.
#pragma once

#include <string_view>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml {

Status CheckMove(const OperatorDesc& desc, FeatureLevel level);
Status InferMove(OperatorDesc* desc);

// What DEPTH_TO_SPACE, SPACE_TO_DEPTH and their like make of `input`. They have as many elements as that.
Status DepthSpaceSizes(const OperatorDesc& desc, const TensorDesc& input, Dimensions* sizes);

// Refusals that sizes of outputs and the operators' checks share.
Status ZeroElement(const OperatorDesc& desc, std::string_view field, uint32_t index);
Status ZeroStride(const OperatorDesc& desc, uint32_t index);  // of a window
Status TooLarge(const OperatorDesc& desc, std::string_view what, uint64_t size);

}  // namespace anydml
