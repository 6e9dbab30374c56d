#include "ops/common/checks.h"
#include "ops/implementation_list.h"
#include "ops/scan/nonzero.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

// Number of dimensions without leading ones of size 1.
uint32_t EffectiveRank(const TensorDesc& tensor) {
  uint32_t d = 0;
  while (d < tensor.rank && tensor.sizes[d] == 1) ++d;
  return tensor.rank - d;
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const auto nonzero = NonzeroCoordinatesDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckOneElement(desc, "OutputCountTensor"));
  const TensorDesc& coordinates = nonzero.output_coordinates;
  const uint32_t last = coordinates.rank - 1, columns = coordinates.sizes[last];
  const uint32_t least = std::max(EffectiveRank(nonzero.input), 1u);
  if (columns < least || columns > nonzero.input.rank) {
    return InvalidArgument("NONZERO_COORDINATES: OutputCoordinatesTensor.Sizes[", last, "] is ", columns,
                           " but InputTensor.Sizes is ", SizesToString(nonzero.input), "; it must be in [",
                           least, ", ", nonzero.input.rank, "]");
  }
  Dimensions sizes;
  sizes.fill(1);
  sizes[last] = columns;
  sizes[last - 1] = static_cast<uint32_t>(ElementCount(nonzero.input));
  return CheckSizes(desc, "OutputCoordinatesTensor", sizes, "a row for every element of InputTensor");
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto nonzero = NonzeroCoordinatesDesc::From(desc);
  const NonzeroProblem problem = {nonzero.input, nonzero.output_coordinates};
  return ChooseKernel(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  const uint64_t elements = ElementCount(input);
  if (elements > UINT32_MAX) {
    return InvalidArgument("NONZERO_COORDINATES: InputTensor has ", elements,
                           " elements; it must have fewer than 4294967296");
  }
  const uint32_t rank = std::max(input.rank, 2u);
  Dimensions sizes;
  sizes.fill(1);
  FillTensor(desc, "OutputCountTensor", DataType::kUInt32, sizes, input.rank);
  sizes[rank - 2] = static_cast<uint32_t>(elements);
  sizes[rank - 1] = input.rank;
  FillTensor(desc, "OutputCoordinatesTensor", DataType::kUInt32, sizes, rank);
  return {};
}

}  // namespace

NonzeroColumns ColumnsOf(const NonzeroProblem& p) {
  const uint32_t last = p.coordinates.rank - 1;
  NonzeroColumns columns;
  columns.count = p.coordinates.sizes[last];
  std::copy_n(p.input.sizes.begin() + (p.input.rank - columns.count), columns.count, columns.sizes);
  columns.row_stride = p.coordinates.strides[last - 1];
  columns.column_stride = p.coordinates.strides[last];
  return columns;
}

const Operator& NonzeroCoordinatesOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kNonzeroCoordinates),
                              Check,
                              Lower,
                              Infer,
                              NonzeroProblem::kFamily,
                              kPlainTraits};
  return op;
}

}  // namespace anydml
