#include "ops/common/checks.h"

#include <algorithm>

namespace anydml {

std::string DimensionsToString(const Dimensions& sizes, uint32_t rank) {
  TensorDesc tensor;
  tensor.rank = rank;
  tensor.sizes = sizes;
  return SizesToString(tensor);
}

Status CheckSizes(const OperatorDesc& desc, std::string_view name, const Dimensions& sizes,
                  std::string_view because) {
  const TensorDesc& tensor = *desc.tensor(name);
  if (std::equal(sizes.begin(), sizes.begin() + tensor.rank, tensor.sizes.begin())) return {};
  return InvalidArgument(desc.schema->name, ": ", name, ".Sizes is ", SizesToString(tensor), " but must be ",
                         DimensionsToString(sizes, tensor.rank), ": ", because);
}

Status CheckOneElement(const OperatorDesc& desc, std::string_view name) {
  const TensorDesc* tensor = desc.tensor(name);
  if (tensor == nullptr || ElementCount(*tensor) == 1) return {};
  return InvalidArgument(desc.schema->name, ": ", name, ".Sizes is ", SizesToString(*tensor),
                         " but must be all 1: one number holds for all elements");
}

Status CheckBroadcastSizes(const OperatorDesc& desc, std::string_view name) {
  const TensorDesc& input = *desc.tensor("InputTensor");
  const TensorDesc& tensor = *desc.tensor(name);
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.sizes[d] == 1 || tensor.sizes[d] == input.sizes[d]) continue;
    return InvalidArgument(desc.schema->name, ": ", name, ".Sizes[", d, "] is ", tensor.sizes[d],
                           " but must be 1 or InputTensor.Sizes[", d, "], which is ", input.sizes[d]);
  }
  return {};
}

Status CheckAxis(const OperatorDesc& desc) {
  const uint32_t axis = desc.uint("Axis");
  const uint32_t rank = desc.tensor("InputTensor")->rank;
  if (axis < rank) return {};
  return InvalidArgument(desc.schema->name, ": Axis is ", axis, " but InputTensor.DimensionCount is ", rank,
                         "; Axis must be in [0, ", rank - 1, "]");
}

Status CheckMeaningfulDimensions(const OperatorDesc& desc, std::string_view tensor_name,
                                 std::string_view count_name, uint32_t least) {
  const TensorDesc& tensor = *desc.tensor(tensor_name);
  const uint32_t count = desc.uint(count_name);
  if (count < least || count > tensor.rank) {
    return InvalidArgument(desc.schema->name, ": ", count_name, " is ", count, " but ", tensor_name,
                           ".DimensionCount is ", tensor.rank, "; ", count_name, " must be in [", least, ", ",
                           tensor.rank, "]");
  }
  for (uint32_t d = 0; d < tensor.rank - count; ++d) {
    if (tensor.sizes[d] == 1) continue;
    return InvalidArgument(desc.schema->name, ": ", tensor_name, ".Sizes[", d, "] is ", tensor.sizes[d],
                           " but ", count_name, " is ", count, " of ", tensor.rank,
                           "; the dimensions left of the last ", count, " must be 1");
  }
  return {};
}

Status RequireTensor(const OperatorDesc& desc, std::string_view name, const TensorDesc** out) {
  *out = desc.tensor(name);
  if (*out != nullptr && (*out)->rank > 0) return {};
  return InvalidArgument(desc.schema->name, ": ", name,
                         " has no sizes; the output's sizes cannot be derived without them");
}

Status RequireOutput(const OperatorDesc& desc, std::string_view name) {
  const TensorDesc* const output = desc.tensor(name);
  if (output != nullptr && output->rank > 0) return {};
  return InvalidArgument(desc.schema->name, ": ", name,
                         " must be given with its sizes and its data type: nothing else determines them");
}

void FillTensor(OperatorDesc* desc, std::string_view name, DataType type, const Dimensions& sizes,
                uint32_t rank) {
  const TensorDesc* given = desc->tensor(name);
  if (given != nullptr && given->rank > 0) return;
  if (given != nullptr && given->type != DataType::kUnknown) type = given->type;
  desc->fields[FindField(*desc->schema, name)] = PackedTensor(type, sizes.data(), rank);
}

}  // namespace anydml
