// Rules that several operators share, beyond the schema's tables.
#pragma once

#include <string_view>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml {

// Tensor `name` has these `sizes` (of the same rank); `because` ends the message.
Status CheckSizes(const OperatorDesc& desc, std::string_view name, const Dimensions& sizes,
                  std::string_view because);

// Tensor `name`, if present, has one element, which applies to all.
Status CheckOneElement(const OperatorDesc& desc, std::string_view name);

// Each size of tensor `name` equals InputTensor's or is 1 (broadcast).
Status CheckBroadcastSizes(const OperatorDesc& desc, std::string_view name);

// `axis` is a dimension of InputTensor.
Status CheckAxis(const OperatorDesc& desc);

// Field `count_name` is the number of a tensor's trailing dimensions that are meaningful, at least `least`;
// all others must be 1.
Status CheckMeaningfulDimensions(const OperatorDesc& desc, std::string_view tensor_name,
                                 std::string_view count_name, uint32_t least);

// "{1,2,3}"
std::string DimensionsToString(const Dimensions& sizes, uint32_t rank);

// For infer: the input, which must be present and have sizes; otherwise null and an error.
Status RequireTensor(const OperatorDesc& desc, std::string_view name, const TensorDesc** out);

// For infer: an output that only the caller determines must have sizes and a type.
Status RequireOutput(const OperatorDesc& desc, std::string_view name);

// For infer: puts a packed tensor of `sizes` into field `name` if it is absent or has no sizes yet. A type
// that the caller has chosen is kept (validation checks it).
void FillTensor(OperatorDesc* desc, std::string_view name, DataType type, const Dimensions& sizes,
                uint32_t rank);

}  // namespace anydml
