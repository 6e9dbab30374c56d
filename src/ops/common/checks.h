// Rules that several operators share, beyond what the schema's tables say.
#pragma once

#include <string_view>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml {

// Sizes of tensor `name` are `sizes` (of the same rank); `because` ends the sentence.
Status CheckSizes(const OperatorDesc& desc, std::string_view name, const Dimensions& sizes,
                  std::string_view because);

// Tensor `name`, where it is present, has one element, which holds for all.
Status CheckOneElement(const OperatorDesc& desc, std::string_view name);

// Each size of tensor `name` is InputTensor's, or 1, which holds for all.
Status CheckBroadcastSizes(const OperatorDesc& desc, std::string_view name);

// `axis` is a dimension of InputTensor.
Status CheckAxis(const OperatorDesc& desc);

// Field `count_name` says how many of a tensor's last dimensions mean something, at least `least`; the
// others, on the left, must be 1.
Status CheckMeaningfulDimensions(const OperatorDesc& desc, std::string_view tensor_name,
                                 std::string_view count_name, uint32_t least);

// "{1,2,3}"
std::string DimensionsToString(const Dimensions& sizes, uint32_t rank);

// For infer: the input that has to be there, with sizes; null and a status otherwise.
Status RequireTensor(const OperatorDesc& desc, std::string_view name, const TensorDesc** out);

// For infer: the output, which nothing but the caller determines, has sizes and a type.
Status RequireOutput(const OperatorDesc& desc, std::string_view name);

// For infer: puts a packed tensor of `sizes` into field `name` where it is absent or
// has no sizes yet. A type the caller has chosen stays (validation judges it).
void FillTensor(OperatorDesc* desc, std::string_view name, DataType type, const Dimensions& sizes,
                uint32_t rank);

}  // namespace anydml
