#include "ops/common/checks.h"
#include "ops/fold/problem.h"
#include "ops/implementation_list.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

// Both operators, with their tensors by role.
struct Fold {
  const char* image_name;
  const char* columns_name;
  const TensorDesc& image;
  const TensorDesc& columns;
  std::span<const uint32_t> sizes;
  std::span<const uint32_t> strides;
  std::span<const uint32_t> dilations;
  std::span<const uint32_t> start;
  std::span<const uint32_t> end;

  uint32_t rank() const { return static_cast<uint32_t>(sizes.size()); }

  // The number of windows is not set.
  WindowAxis Axis(uint32_t i) const {
    return {.input = image.sizes[2 + i],
            .size = sizes[i],
            .stride = strides[i],
            .dilation = dilations[i],
            .start = start[i],
            .end = end[i]};
  }
};

bool IsUnfold(const OperatorDesc& desc) {
  return desc.schema->type == static_cast<uint32_t>(OperatorType::kUnfold);
}

Fold FoldOf(const OperatorDesc& desc) {
  if (IsUnfold(desc)) {
    const auto typed = UnfoldDesc::From(desc);
    return {"InputTensor", "OutputTensor",  typed.input,         typed.output,     typed.window_sizes,
            typed.strides, typed.dilations, typed.start_padding, typed.end_padding};
  }
  const auto typed = FoldDesc::From(desc);
  return {"OutputTensor", "InputTensor",   typed.output,        typed.input,      typed.window_sizes,
          typed.strides,  typed.dilations, typed.start_padding, typed.end_padding};
}

Status CheckAxes(const OperatorDesc& desc, const Fold& fold) {
  if (fold.rank() < 1 || fold.rank() > kMaxFoldRank || fold.rank() + 2 != fold.image.rank) {
    return InvalidArgument(desc.schema->name, ": DimensionCount is ", fold.rank(), " but ", fold.image_name,
                           ".DimensionCount is ", fold.image.rank, "; it must be 2 less, from 1 to ",
                           kMaxFoldRank);
  }
  for (uint32_t i = 0; i < fold.rank(); ++i) {
    const WindowAxis axis = fold.Axis(i);
    const std::pair<const char*, uint32_t> fields[] = {
        {"WindowSizes", axis.size}, {"Strides", axis.stride}, {"Dilations", axis.dilation}};
    for (const auto& [name, value] : fields) {
      if (value > 0) continue;
      return InvalidArgument(desc.schema->name, ": ", name, "[", i, "] is 0 but must be at least 1");
    }
    if (ExtentOf(axis) <= PaddedSize(axis)) continue;
    return InvalidArgument(desc.schema->name, ": WindowSizes[", i, "] is ", axis.size, ", which covers ",
                           ExtentOf(axis), " elements, but ", fold.image_name, ".Sizes[", 2 + i,
                           "] with its padding is ", PaddedSize(axis), "; it may be at most that");
  }
  return {};
}

uint64_t WindowsOf(const WindowAxis& axis) { return (PaddedSize(axis) - ExtentOf(axis)) / axis.stride + 1; }

// The sizes of an image's columns, {N, C * taps, windows}, as 64-bit numbers.
Status ColumnSizes(const OperatorDesc& desc, const Fold& fold, std::array<uint64_t, 3>* sizes) {
  ANYDML_RETURN_IF_ERROR(CheckAxes(desc, fold));
  *sizes = {fold.image.sizes[0], fold.image.sizes[1], 1};
  for (uint32_t i = 0; i < fold.rank(); ++i) {
    const WindowAxis axis = fold.Axis(i);
    (*sizes)[1] *= axis.size;
    (*sizes)[2] *= WindowsOf(axis);
    for (const uint32_t d : {1, 2}) {
      if ((*sizes)[d] <= UINT32_MAX) continue;
      return InvalidArgument(desc.schema->name, ": ", fold.image_name, " has 2^32 or more ",
                             d == 1 ? "taps in the windows of all channels" : "windows",
                             ", more than a dimension of ", fold.columns_name, " may have");
    }
  }
  return {};
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const Fold fold = FoldOf(desc);
  std::array<uint64_t, 3> columns;
  ANYDML_RETURN_IF_ERROR(ColumnSizes(desc, fold, &columns));
  if (fold.image.type != fold.columns.type) {
    return InvalidArgument(desc.schema->name, ": OutputTensor.DataType is ",
                           Name(desc.tensor("OutputTensor")->type), " but must be that of InputTensor, ",
                           Name(desc.tensor("InputTensor")->type));
  }
  // The three dimensions may have leading 1s.
  Dimensions wanted;
  wanted.fill(1);
  for (uint32_t d = 0; d < 3; ++d) {
    wanted[fold.columns.rank - 3 + d] = static_cast<uint32_t>(columns[d]);
  }
  return CheckSizes(desc, fold.columns_name, wanted,
                    "batches, the taps of a window in all channels, and windows");
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const Fold fold = FoldOf(desc);
  FoldProblem problem = {.unfold = IsUnfold(desc),
                         .type = fold.image.type,
                         .batch = fold.image.sizes[0],
                         .channels = fold.image.sizes[1],
                         .rank = fold.rank()};
  for (uint32_t i = 0; i < fold.rank(); ++i) {
    problem.axes[i] = fold.Axis(i);
    problem.axes[i].windows = static_cast<uint32_t>(WindowsOf(problem.axes[i]));
  }
  for (uint32_t d = 0; d < fold.image.rank; ++d) problem.image_strides[d] = fold.image.strides[d];
  for (uint32_t d = 0; d < 3; ++d) {
    problem.column_strides[d] = fold.columns.strides[fold.columns.rank - 3 + d];
  }
  return ChooseKernel(problem, context, out);
}

Status InferUnfold(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc image = *given;
  std::array<uint64_t, 3> columns;
  ANYDML_RETURN_IF_ERROR(ColumnSizes(*desc, FoldOf(*desc), &columns));
  Dimensions sizes{};
  for (uint32_t d = 0; d < 3; ++d) sizes[d] = static_cast<uint32_t>(columns[d]);
  FillTensor(desc, "OutputTensor", image.type, sizes, 3);
  return {};
}

Status InferFold(OperatorDesc* desc) {
  const TensorDesc* output = desc->tensor("OutputTensor");
  if (output != nullptr && output->rank > 0) return {};
  return InvalidArgument(desc->schema->name,
                         ": OutputTensor has no sizes, and the input does not determine them");
}

}  // namespace

std::span<const Operator> FoldOperators() {
  static const Operator kOperators[] = {
      {static_cast<uint32_t>(OperatorType::kFold), Check, Lower, InferFold, FoldProblem::kFamily,
       kPlainTraits},
      {static_cast<uint32_t>(OperatorType::kUnfold), Check, Lower, InferUnfold, FoldProblem::kFamily,
       kPlainTraits},
  };
  return kOperators;
}

namespace family::fold {

void RegisterOperators(OperatorList* all) { all->Add(FoldOperators()); }

}  // namespace family::fold

}  // namespace anydml
