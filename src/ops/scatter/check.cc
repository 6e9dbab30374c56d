#include <algorithm>

#include "ops/common/checks.h"
#include "ops/scatter/scatter.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

Status CheckTupleSize(const ScatterNdDesc& desc) {
  const uint32_t last = desc.indices.rank - 1;
  const uint32_t tuple_size = desc.indices.sizes[last];
  const uint32_t input_dimensions = desc.input_dimension_count;
  if (tuple_size >= 1 && tuple_size <= input_dimensions) return {};
  return InvalidArgument("SCATTER_ND: IndicesTensor.Sizes[", last, "], the size of an index tuple, is ",
                         tuple_size, " but InputDimensionCount is ", input_dimensions, "; it must be in [1, ",
                         input_dimensions, "]");
}

// Right-aligned: the indices' sizes without the tuple, then the input's sizes that the tuple does not
// address.
Status UpdatesSizes(const ScatterNdDesc& desc, Dimensions* sizes) {
  const uint32_t rank = desc.input.rank;
  const uint32_t positions = desc.indices_dimension_count - 1;
  const uint32_t tuple_size = desc.indices.sizes[rank - 1];
  const uint32_t slice = desc.input_dimension_count - tuple_size;
  if (positions + slice > rank) {
    return InvalidArgument("SCATTER_ND: UpdatesTensor would need IndicesDimensionCount - 1 + ",
                           "InputDimensionCount - ", tuple_size, " = ", positions + slice,
                           " dimensions but DimensionCount is ", rank, "; it must be at least ",
                           positions + slice);
  }
  sizes->fill(1);
  std::copy_n(desc.indices.sizes.begin() + (rank - 1 - positions), positions,
              sizes->begin() + (rank - positions - slice));
  std::copy_n(desc.input.sizes.begin() + (rank - slice), slice, sizes->begin() + (rank - slice));
  return {};
}

}  // namespace

Status CheckScatterNd(const OperatorDesc& desc, FeatureLevel) {
  ANYDML_RETURN_IF_ERROR(CheckMeaningfulDimensions(desc, "InputTensor", "InputDimensionCount", 1));
  ANYDML_RETURN_IF_ERROR(CheckMeaningfulDimensions(desc, "IndicesTensor", "IndicesDimensionCount", 1));
  const auto scatter = ScatterNdDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckTupleSize(scatter));
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(UpdatesSizes(scatter, &sizes));
  return CheckSizes(desc, "UpdatesTensor", sizes,
                    "the sizes of IndicesTensor without the tuple, then those of InputTensor behind the "
                    "dimensions that a tuple addresses");
}

// The schema already requires updates to have the indices' sizes.
Status CheckScatterElements(const OperatorDesc& desc, FeatureLevel) {
  ANYDML_RETURN_IF_ERROR(CheckAxis(desc));
  const auto scatter = ScatterElementsDesc::From(desc);
  Dimensions sizes = scatter.input.sizes;
  sizes[scatter.axis] = scatter.indices.sizes[scatter.axis];
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
