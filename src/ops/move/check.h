// Rules of the moving operators beyond the schema's tables, and the sizes of their outputs.
#pragma once

#include <string_view>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml {

Status CheckMove(const OperatorDesc& desc, FeatureLevel level);
Status InferMove(OperatorDesc* desc);

// The output sizes of DEPTH_TO_SPACE, SPACE_TO_DEPTH and their like for `input`. The number of elements is
// the same.
Status DepthSpaceSizes(const OperatorDesc& desc, const TensorDesc& input, Dimensions* sizes);

// Errors that inference and checks share.
Status ZeroElement(const OperatorDesc& desc, std::string_view field, uint32_t index);
Status ZeroStride(const OperatorDesc& desc, uint32_t index);  // of a window
Status TooLarge(const OperatorDesc& desc, std::string_view what, uint64_t size);

}  // namespace anydml
