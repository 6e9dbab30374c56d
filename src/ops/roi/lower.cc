#include <algorithm>

#include "ops/common/checks.h"
#include "ops/implementation_list.h"
#include "ops/roi/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

// The number of regions in ROITensor, {1,...,regions,numbers}; 0 if its sizes are different.
uint32_t RegionCount(const TensorDesc& roi, uint32_t numbers) {
  if (roi.rank < 2 || roi.sizes[roi.rank - 1] != numbers) return 0;
  const auto leading = roi.sizes.begin() + roi.rank - 2;
  const bool is_flat = std::all_of(roi.sizes.begin(), leading, [](uint32_t size) { return size == 1; });
  return is_flat ? *leading : 0;
}

Status CheckRegions(const OperatorDesc& desc, uint32_t numbers) {
  const TensorDesc& roi = *desc.tensor("ROITensor");
  if (RegionCount(roi, numbers) != 0) return {};
  return InvalidArgument(desc.schema->name, ": ROITensor.Sizes is ", SizesToString(roi),
                         " but must be {NumROIs,", numbers, "}, with 1s before it");
}

// Tensor `name` must have a grid for every region: {regions, channels, any, any}.
Status CheckGrid(const OperatorDesc& desc, std::string_view name, uint32_t regions, uint32_t channels) {
  Dimensions sizes = desc.tensor(name)->sizes;
  sizes[0] = regions;
  sizes[1] = channels;
  return CheckSizes(desc, name, sizes, "there are so many regions, and channels in the image");
}

Status CheckPooling(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = RoiPoolingDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckRegions(desc, 5));
  ANYDML_RETURN_IF_ERROR(CheckGrid(desc, "OutputTensor", RegionCount(typed.roi, 5), typed.input.sizes[1]));
  // ONNX Runtime has always passed the height first.
  const uint32_t height = typed.output.sizes[2], width = typed.output.sizes[3];
  const Size2D& size = typed.pooled_size;
  if ((size.width == width && size.height == height) || (size.width == height && size.height == width))
    return {};
  return InvalidArgument(desc.schema->name, ": PooledSize is {Width ", size.width, ", Height ", size.height,
                         "} but must be {Width ", width, ", Height ", height,
                         "}, the last dimensions of OutputTensor");
}

// The checks that all ROI_ALIGN operators share.
Status CheckAlignment(const OperatorDesc& desc, uint32_t minimum, uint32_t maximum, ReduceFunction function) {
  ANYDML_RETURN_IF_ERROR(CheckRegions(desc, 4));
  const uint32_t regions = RegionCount(*desc.tensor("ROITensor"), 4);
  const TensorDesc& indices = *desc.tensor("BatchIndicesTensor");
  Dimensions sizes;
  sizes.fill(1);
  sizes[indices.rank - 1] = regions;
  ANYDML_RETURN_IF_ERROR(CheckSizes(desc, "BatchIndicesTensor", sizes, "every region has an image"));
  if (function != ReduceFunction::kAverage && function != ReduceFunction::kMax) {
    return InvalidArgument(desc.schema->name, ": ReductionFunction is ", static_cast<uint32_t>(function),
                           " but must be AVERAGE (2) or MAX (7)");
  }
  if (std::max(minimum, 1u) > std::max(maximum, 1u)) {
    return InvalidArgument(desc.schema->name, ": MinimumSamplesPerOutput is ", minimum,
                           " but MaximumSamplesPerOutput is ", maximum, "; it must not be larger");
  }
  return {};
}

template <typename Desc>
Status CheckAlign(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = Desc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckAlignment(desc, typed.minimum_samples_per_output,
                                        typed.maximum_samples_per_output, typed.reduction_function));
  return CheckGrid(desc, "OutputTensor", RegionCount(typed.roi, 4), typed.input.sizes[1]);
}

Status CheckGradient(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = RoiAlignGradDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckAlignment(desc, typed.minimum_samples_per_output,
                                        typed.maximum_samples_per_output, typed.reduction_function));
  if (typed.output_gradient == nullptr && typed.output_roi_gradient == nullptr) {
    return InvalidArgument(desc.schema->name,
                           ": OutputGradientTensor and OutputROIGradientTensor are null; one of "
                           "them must be there");
  }
  const bool maximum = typed.reduction_function == ReduceFunction::kMax;
  if (typed.input == nullptr && (maximum || typed.output_roi_gradient != nullptr)) {
    return InvalidArgument(desc.schema->name, ": InputTensor is null but must be there ",
                           maximum ? "when ReductionFunction is MAX" : "when OutputROIGradientTensor is");
  }
  if (typed.input != nullptr && typed.output_gradient != nullptr) {
    ANYDML_RETURN_IF_ERROR(
        CheckSizes(desc, "OutputGradientTensor", typed.input->sizes, "it is the gradient of InputTensor"));
  }
  const TensorDesc& image = typed.input != nullptr ? *typed.input : *typed.output_gradient;
  return CheckGrid(desc, "InputGradientTensor", RegionCount(typed.roi, 4), image.sizes[1]);
}

void CopyStrides(const TensorDesc& tensor, uint32_t (&strides)[4]) {
  std::copy_n(tensor.strides.begin(), 4, strides);
}

void CopyRegionStrides(const TensorDesc& tensor, uint32_t (&strides)[2]) {
  std::copy_n(tensor.strides.begin() + tensor.rank - 2, 2, strides);
}

RoiProblem ProblemOf(RoiKind kind, const TensorDesc& image, const TensorDesc& roi, const TensorDesc& grid) {
  RoiProblem problem;
  problem.kind = kind;
  problem.type = grid.type;
  problem.images = image.sizes[0];
  problem.channels = image.sizes[1];
  problem.height = image.sizes[2];
  problem.width = image.sizes[3];
  problem.regions = grid.sizes[0];
  problem.grid_height = grid.sizes[2];
  problem.grid_width = grid.sizes[3];
  CopyStrides(image, problem.image_strides);
  CopyStrides(grid, problem.grid_strides);
  CopyRegionStrides(roi, problem.roi_strides);
  return problem;
}

// The attributes that all ROI_ALIGN operators share.
template <typename Desc>
void ReadAlignment(const Desc& typed, RoiProblem* problem) {
  problem->index_type = typed.batch_indices.type;
  problem->index_stride = typed.batch_indices.strides[typed.batch_indices.rank - 1];
  problem->maximum = typed.reduction_function == ReduceFunction::kMax;
  problem->linear = typed.interpolation_mode == InterpolationMode::kLinear;
  problem->scale_x = typed.spatial_scale_x;
  problem->scale_y = typed.spatial_scale_y;
  problem->min_samples = std::max(typed.minimum_samples_per_output, 1u);
  problem->max_samples = std::max(typed.maximum_samples_per_output, 1u);
}

Status Choose(const RoiProblem& problem, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(problem, context, out);
}

Status LowerPooling(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = RoiPoolingDesc::From(desc);
  RoiProblem problem = ProblemOf(RoiKind::kPooling, typed.input, typed.roi, typed.output);
  problem.scale_x = problem.scale_y = typed.spatial_scale;
  return Choose(problem, context, out);
}

Status LowerAlign(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = RoiAlignDesc::From(desc);
  RoiProblem problem = ProblemOf(RoiKind::kAlign, typed.input, typed.roi, typed.output);
  ReadAlignment(typed, &problem);
  problem.input_offset = 0.5f;
  problem.output_offset = -0.5f;
  problem.outside = typed.out_of_bounds_input_value;
  return Choose(problem, context, out);
}

Status LowerAlign1(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = RoiAlign1Desc::From(desc);
  RoiProblem problem = ProblemOf(RoiKind::kAlign, typed.input, typed.roi, typed.output);
  ReadAlignment(typed, &problem);
  problem.input_offset = typed.input_pixel_offset;
  problem.output_offset = typed.output_pixel_offset;
  problem.outside = typed.out_of_bounds_input_value;
  problem.corners = typed.align_regions_to_corners;
  return Choose(problem, context, out);
}

Status LowerGradient(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = RoiAlignGradDesc::From(desc);
  const TensorDesc& image = typed.input != nullptr ? *typed.input : *typed.output_gradient;
  RoiProblem problem = ProblemOf(RoiKind::kAlignGradient, image, typed.roi, typed.input_gradient);
  ReadAlignment(typed, &problem);
  problem.input_offset = typed.input_pixel_offset;
  problem.output_offset = typed.output_pixel_offset;
  problem.corners = typed.align_regions_to_corners;
  if (typed.output_gradient != nullptr) {
    problem.has_image_gradient = true;
    CopyStrides(*typed.output_gradient, problem.image_gradient_strides);
  }
  if (typed.output_roi_gradient != nullptr) {
    problem.has_roi_gradient = true;
    CopyRegionStrides(*typed.output_roi_gradient, problem.roi_gradient_strides);
  }
  return Choose(problem, context, out);
}

Status InferPooling(OperatorDesc* desc) {
  const TensorDesc *input = nullptr, *roi = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "ROITensor", &roi));
  const auto* size = std::get_if<Size2D>(&desc->fields[FindField(*desc->schema, "PooledSize")]);
  if (size == nullptr || roi->rank < 2) return {};
  const Dimensions sizes = {roi->sizes[roi->rank - 2], input->sizes[1], size->height, size->width};
  FillTensor(desc, "OutputTensor", input->type, sizes, 4);
  return {};
}

// The caller chooses a grid's size; by default it is one number.
Status InferAlign(OperatorDesc* desc) {
  const TensorDesc *input = nullptr, *roi = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "ROITensor", &roi));
  if (roi->rank < 2) return {};
  const Dimensions sizes = {roi->sizes[roi->rank - 2], input->sizes[1], 1, 1};
  FillTensor(desc, "OutputTensor", input->type, sizes, 4);
  return {};
}

// Without InputTensor the caller also chooses the image's size.
Status InferGradient(OperatorDesc* desc) {
  const TensorDesc *gradient = nullptr, *roi = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputGradientTensor", &gradient));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "ROITensor", &roi));
  const TensorDesc regions = *roi;
  const TensorDesc* const input = desc->tensor("InputTensor");
  const bool has_input = input != nullptr && input->rank > 0;
  const Dimensions sizes = has_input ? input->sizes : Dimensions{1, gradient->sizes[1], 1, 1};
  FillTensor(desc, "OutputGradientTensor", gradient->type, sizes, 4);
  FillTensor(desc, "OutputROIGradientTensor", regions.type, regions.sizes, regions.rank);
  return {};
}

}  // namespace

std::span<const Operator> RoiOperators() {
  const auto number = [](OperatorType type) { return static_cast<uint32_t>(type); };
  static const Operator operators[] = {
      {number(OperatorType::kRoiPooling), CheckPooling, LowerPooling, InferPooling, RoiProblem::kFamily,
       kPlainTraits},
      {number(OperatorType::kRoiAlign), CheckAlign<RoiAlignDesc>, LowerAlign, InferAlign, RoiProblem::kFamily,
       kPlainTraits},
      {number(OperatorType::kRoiAlign1), CheckAlign<RoiAlign1Desc>, LowerAlign1, InferAlign,
       RoiProblem::kFamily, kPlainTraits},
      {number(OperatorType::kRoiAlignGrad), CheckGradient, LowerGradient, InferGradient, RoiProblem::kFamily,
       kPlainTraits},
  };
  return operators;
}

namespace family::roi {

void RegisterOperators(OperatorList* all) { all->Add(RoiOperators()); }

}  // namespace family::roi

}  // namespace anydml
