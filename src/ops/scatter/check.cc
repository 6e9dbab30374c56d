#include <algorithm>

#include "ops/common/checks.h"
#include "ops/scatter/scatter.h"

namespace anydml {
namespace {

// `count` meaningful dimensions of `tensor`; the others, on the left, must be 1.
Status CheckMeaningful(const OperatorDesc& desc, const char* tensor_name, const char* count_name) {
  const TensorDesc& tensor = *desc.tensor(tensor_name);
  const uint32_t count = desc.uint(count_name);
  if (count < 1 || count > tensor.rank) {
    return InvalidArgument(desc.schema->name, ": ", count_name, " is ", count, " but ", tensor_name,
                           ".DimensionCount is ", tensor.rank, "; ", count_name, " must be in [1, ",
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

Status CheckTupleSize(const OperatorDesc& desc) {
  const TensorDesc& indices = *desc.tensor("IndicesTensor");
  const uint32_t tuple_size = indices.sizes[indices.rank - 1];
  const uint32_t input_dimensions = desc.uint("InputDimensionCount");
  if (tuple_size >= 1 && tuple_size <= input_dimensions) return {};
  return InvalidArgument(desc.schema->name, ": IndicesTensor.Sizes[", indices.rank - 1,
                         "], the size of an index tuple, is ", tuple_size, " but InputDimensionCount is ",
                         input_dimensions, "; it must be in [1, ", input_dimensions, "]");
}

// Right-aligned: the indices' sizes without the tuple, then the input's sizes
// that the tuple leaves open.
Status UpdatesSizes(const OperatorDesc& desc, Dimensions* sizes) {
  const TensorDesc& input = *desc.tensor("InputTensor");
  const TensorDesc& indices = *desc.tensor("IndicesTensor");
  const uint32_t rank = input.rank;
  const uint32_t positions = desc.uint("IndicesDimensionCount") - 1;
  const uint32_t tuple_size = indices.sizes[rank - 1];
  const uint32_t slice = desc.uint("InputDimensionCount") - tuple_size;
  if (positions + slice > rank) {
    return InvalidArgument(desc.schema->name, ": UpdatesTensor would need IndicesDimensionCount - 1 + ",
                           "InputDimensionCount - ", tuple_size, " = ", positions + slice,
                           " dimensions but DimensionCount is ", rank, "; it must be at least ",
                           positions + slice);
  }
  sizes->fill(1);
  std::copy_n(indices.sizes.begin() + (rank - 1 - positions), positions,
              sizes->begin() + (rank - positions - slice));
  std::copy_n(input.sizes.begin() + (rank - slice), slice, sizes->begin() + (rank - slice));
  return {};
}

}  // namespace

Status CheckScatterNd(const OperatorDesc& desc, FeatureLevel) {
  ANYDML_RETURN_IF_ERROR(CheckMeaningful(desc, "InputTensor", "InputDimensionCount"));
  ANYDML_RETURN_IF_ERROR(CheckMeaningful(desc, "IndicesTensor", "IndicesDimensionCount"));
  ANYDML_RETURN_IF_ERROR(CheckTupleSize(desc));
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(UpdatesSizes(desc, &sizes));
  return CheckSizes(desc, "UpdatesTensor", sizes,
                    "the sizes of IndicesTensor without the tuple, then those of InputTensor behind the "
                    "dimensions that a tuple addresses");
}

// That updates have the sizes of the indices is in the schema.
Status CheckScatterElements(const OperatorDesc& desc, FeatureLevel) {
  ANYDML_RETURN_IF_ERROR(CheckAxis(desc));
  const uint32_t axis = desc.uint("Axis");
  Dimensions sizes = desc.tensor("InputTensor")->sizes;
  sizes[axis] = desc.tensor("IndicesTensor")->sizes[axis];
  return CheckSizes(desc, "IndicesTensor", sizes, "the sizes of InputTensor, with any size along Axis");
}

Status InferScatter(OperatorDesc* desc) {
  const TensorDesc* input = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  const TensorDesc from = *input;
  FillTensor(desc, "OutputTensor", from.type, from.sizes, from.rank);
  return {};
}

}  // namespace anydml
