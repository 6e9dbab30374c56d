#include <algorithm>
#include <array>

#include "ops/common/checks.h"
#include "ops/gather/problem.h"
#include "ops/implementation_list.h"
#include "ops/work.h"

namespace anydml {
namespace {

constexpr FeatureLevel kNegativeIndices = 0x3000;

bool Is(const OperatorDesc& desc, OperatorType type) { return desc.schema == FindOperator(type); }

// GATHER: the input's sizes with the indices' sizes in place of the axis, right-aligned.
Status AxisOutputSizes(const OperatorDesc& desc, Dimensions* sizes) {
  const TensorDesc &input = *desc.tensor("InputTensor"), &indices = *desc.tensor("IndicesTensor");
  const uint32_t axis = desc.uint("Axis"), positions = desc.uint("IndexDimensions");
  const uint32_t rank = input.rank, count = rank - 1 + positions;
  uint32_t all[2 * kMaxDimensions];
  uint32_t* end = std::copy_n(input.sizes.begin(), axis, all);
  end = std::copy_n(indices.sizes.begin() + (rank - positions), positions, end);
  std::copy(input.sizes.begin() + axis + 1, input.sizes.begin() + rank, end);
  for (uint32_t d = 0; d + rank < count; ++d) {
    if (all[d] == 1) continue;
    return InvalidArgument(
        "GATHER: OutputTensor would need ", count - d,
        " dimensions, those of InputTensor with IndexDimensions of them instead of Axis, but "
        "DimensionCount is ",
        rank, "; it must be at least ", count - d);
  }
  sizes->fill(1);
  const uint32_t kept = std::min(count, rank);
  std::copy_n(all + (count - kept), kept, sizes->begin() + (rank - kept));
  return {};
}

uint32_t BatchDimensions(const OperatorDesc& desc) {
  return Is(desc, OperatorType::kGatherNd1) ? desc.uint("BatchDimensionCount") : 0;
}

Status CheckBatches(const OperatorDesc& desc) {
  const TensorDesc &input = *desc.tensor("InputTensor"), &indices = *desc.tensor("IndicesTensor");
  const uint32_t input_count = desc.uint("InputDimensionCount");
  const uint32_t indices_count = desc.uint("IndicesDimensionCount");
  const uint32_t batches = BatchDimensions(desc), fewer = std::min(input_count, indices_count);
  if (batches >= fewer) {
    return InvalidArgument(desc.schema->name, ": BatchDimensionCount is ", batches,
                           " but InputDimensionCount is ", input_count, " and IndicesDimensionCount ",
                           indices_count, "; BatchDimensionCount must be in [0, ", fewer - 1, "]");
  }
  for (uint32_t d = 0; d < batches; ++d) {
    const uint32_t in_input = input.rank - input_count + d, in_indices = indices.rank - indices_count + d;
    if (input.sizes[in_input] == indices.sizes[in_indices]) continue;
    return InvalidArgument(desc.schema->name, ": IndicesTensor.Sizes[", in_indices, "] is ",
                           indices.sizes[in_indices], " but InputTensor.Sizes[", in_input, "] is ",
                           input.sizes[in_input], "; the sizes of the ", batches,
                           " batch dimensions must be equal");
  }
  return {};
}

// GATHER_ND: the indices' sizes without the tuple, then the input's sizes that the tuple does not address.
Status NdOutputSizes(const OperatorDesc& desc, Dimensions* sizes) {
  const TensorDesc &input = *desc.tensor("InputTensor"), &indices = *desc.tensor("IndicesTensor");
  const uint32_t rank = input.rank, batches = BatchDimensions(desc);
  const uint32_t tuple_size = indices.sizes[rank - 1];
  const uint32_t addressable = desc.uint("InputDimensionCount") - batches;
  if (tuple_size < 1 || tuple_size > addressable) {
    return InvalidArgument(desc.schema->name, ": IndicesTensor.Sizes[", rank - 1,
                           "], the size of an index tuple, is ", tuple_size, " but InputDimensionCount is ",
                           desc.uint("InputDimensionCount"),
                           batches == 0 ? "" : StrCat(" and BatchDimensionCount ", batches),
                           "; it must be in [1, ", addressable, "]");
  }
  const uint32_t positions = desc.uint("IndicesDimensionCount") - 1, slice = addressable - tuple_size;
  if (positions + slice > rank) {
    return InvalidArgument(desc.schema->name, ": OutputTensor would need ", positions + slice,
                           " dimensions, ", positions, " of IndicesTensor and ", slice,
                           " of InputTensor, but DimensionCount is ", rank, "; it must be at least ",
                           positions + slice);
  }
  sizes->fill(1);
  std::copy_n(indices.sizes.begin() + (rank - 1 - positions), positions,
              sizes->begin() + (rank - positions - slice));
  std::copy_n(input.sizes.begin() + (rank - slice), slice, sizes->begin() + (rank - slice));
  return {};
}

// Checks everything except the output's sizes, which it computes.
Status CheckAndFindSizes(const OperatorDesc& desc, Dimensions* sizes) {
  if (Is(desc, OperatorType::kGather)) {
    ANYDML_RETURN_IF_ERROR(CheckAxis(desc));
    ANYDML_RETURN_IF_ERROR(CheckMeaningfulDimensions(desc, "IndicesTensor", "IndexDimensions", 0));
    return AxisOutputSizes(desc, sizes);
  }
  if (Is(desc, OperatorType::kGatherElements)) {
    ANYDML_RETURN_IF_ERROR(CheckAxis(desc));
    const uint32_t axis = desc.uint("Axis");
    const TensorDesc& indices = *desc.tensor("IndicesTensor");
    *sizes = desc.tensor("InputTensor")->sizes;
    (*sizes)[axis] = indices.sizes[axis];
    return CheckSizes(desc, "IndicesTensor", *sizes, "the sizes of InputTensor, with any size along Axis");
  }
  ANYDML_RETURN_IF_ERROR(CheckMeaningfulDimensions(desc, "InputTensor", "InputDimensionCount", 1));
  ANYDML_RETURN_IF_ERROR(CheckMeaningfulDimensions(desc, "IndicesTensor", "IndicesDimensionCount", 1));
  ANYDML_RETURN_IF_ERROR(CheckBatches(desc));
  return NdOutputSizes(desc, sizes);
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(CheckAndFindSizes(desc, &sizes));
  return CheckSizes(desc, "OutputTensor", sizes,
                    Is(desc, OperatorType::kGather)
                        ? "the sizes of InputTensor with those of IndicesTensor instead of Axis"
                        : "the sizes of IndicesTensor without the tuple, then those of InputTensor behind "
                          "the dimensions that a tuple addresses");
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  GatherProblem problem;
  problem.name = desc.schema->name;
  problem.input = *desc.tensor("InputTensor");
  problem.indices = *desc.tensor("IndicesTensor");
  problem.output = *desc.tensor("OutputTensor");
  const DataType type = problem.indices.type;
  const bool is_signed = type == DataType::kInt32 || type == DataType::kInt64;
  problem.wraps = is_signed && context.level >= kNegativeIndices;
  if (Is(desc, OperatorType::kGather)) {
    problem.kind = GatherProblem::Kind::kAxis;
    problem.axis = desc.uint("Axis");
    problem.indices_dimensions = desc.uint("IndexDimensions");
  } else if (Is(desc, OperatorType::kGatherElements)) {
    problem.kind = GatherProblem::Kind::kElements;
    problem.axis = desc.uint("Axis");
  } else {
    problem.kind = GatherProblem::Kind::kNd;
    problem.input_dimensions = desc.uint("InputDimensionCount");
    problem.indices_dimensions = desc.uint("IndicesDimensionCount");
    problem.batch_dimensions = BatchDimensions(desc);
  }
  return ChooseKernel(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc *input = nullptr, *indices = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "IndicesTensor", &indices));
  // A rule of the schema, which is checked when the description is complete.
  if (input->rank != indices->rank) {
    return InvalidArgument(desc->schema->name, ": InputTensor.DimensionCount is ", input->rank,
                           " but IndicesTensor.DimensionCount is ", indices->rank, "; they must be equal");
  }
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(CheckAndFindSizes(*desc, &sizes));
  FillTensor(desc, "OutputTensor", input->type, sizes, input->rank);
  return {};
}

constexpr Operator Row(OperatorType type) {
  return {static_cast<uint32_t>(type),
          Check,
          Lower,
          Infer,
          GatherProblem::kFamily,
          type == OperatorType::kGather ? kPlainTraits.With(WorkOfElements) : kPlainTraits};
}

}  // namespace

std::span<const Operator> GatherOperators() {
  static constexpr std::array operators = {Row(OperatorType::kGather), Row(OperatorType::kGatherElements),
                                           Row(OperatorType::kGatherNd), Row(OperatorType::kGatherNd1)};
  return operators;
}

namespace family::gather {

void RegisterOperators(OperatorList* all) { all->Add(GatherOperators()); }

}  // namespace family::gather

}  // namespace anydml
