#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/common/checks.h"
#include "ops/implementation_list.h"
#include "ops/resample/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

// The common fields of the operators.
struct Resampling {
  const TensorDesc& input;
  const TensorDesc& output;
  InterpolationMode mode;
  ResampleRule nearest;
  std::span<const float> scales;
  std::span<const float> input_offsets = {};  // empty: those of pixel centres
  std::span<const float> output_offsets = {};
  bool antialiased = false;
  bool gradient = false;
};

ResampleRule RuleOf(AxisDirection rounding) {
  return rounding == AxisDirection::kIncreasing ? ResampleRule::kCeil : ResampleRule::kFloor;
}

Resampling Read(const OperatorDesc& desc) {
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kResample: {
      const auto typed = ResampleDesc::From(desc);
      return {typed.input, typed.output, typed.interpolation_mode, ResampleRule::kHalfUp, typed.scales};
    }
    case OperatorType::kResample1: {
      const auto typed = Resample1Desc::From(desc);
      return {typed.input,
              typed.output,
              typed.interpolation_mode,
              ResampleRule::kHalfUp,
              typed.scales,
              typed.input_pixel_offsets,
              typed.output_pixel_offsets};
    }
    case OperatorType::kResample2: {
      const auto typed = Resample2Desc::From(desc);
      return {typed.input,
              typed.output,
              typed.interpolation_mode,
              RuleOf(typed.rounding_direction),
              typed.scales,
              typed.input_pixel_offsets,
              typed.output_pixel_offsets};
    }
    case OperatorType::kResample3: {
      const auto typed = Resample3Desc::From(desc);
      return {typed.input,
              typed.output,
              typed.interpolation_mode,
              RuleOf(typed.rounding_direction),
              typed.scales,
              typed.input_pixel_offsets,
              typed.output_pixel_offsets,
              typed.antialiased};
    }
    case OperatorType::kResampleGrad: {
      const auto typed = ResampleGradDesc::From(desc);
      return {typed.input_gradient,
              typed.output_gradient,
              typed.interpolation_mode,
              ResampleRule::kHalfUp,
              typed.scales,
              typed.input_pixel_offsets,
              typed.output_pixel_offsets,
              false,
              true};
    }
    default: {
      const auto typed = ResampleGrad1Desc::From(desc);
      return {typed.input_gradient,
              typed.output_gradient,
              typed.interpolation_mode,
              RuleOf(typed.rounding_direction),
              typed.scales,
              typed.input_pixel_offsets,
              typed.output_pixel_offsets,
              false,
              true};
    }
  }
}

Status CheckFinite(const OperatorDesc& desc, std::string_view name, std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    return InvalidArgument(desc.schema->name, ": ", name, "[", i, "] is ", values[i],
                           " but must be a finite number");
  }
  return {};
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const Resampling given = Read(desc);
  if (given.scales.size() != given.input.rank) {
    const bool counts_scales = static_cast<OperatorType>(desc.schema->type) == OperatorType::kResample;
    return InvalidArgument(desc.schema->name, ": ", counts_scales ? "ScaleCount" : "DimensionCount", " is ",
                           given.scales.size(), " but must be ", given.input.rank,
                           ", the DimensionCount of the tensors: every dimension has a scale");
  }
  for (size_t i = 0; i < given.scales.size(); ++i) {
    if (given.scales[i] > 0 && std::isfinite(given.scales[i])) continue;
    return InvalidArgument(desc.schema->name, ": Scales[", i, "] is ", given.scales[i],
                           " but must be a finite number above 0");
  }
  ANYDML_RETURN_IF_ERROR(CheckFinite(desc, "InputPixelOffsets", given.input_offsets));
  return CheckFinite(desc, "OutputPixelOffsets", given.output_offsets);
}

ResampleRule RuleOf(const Resampling& given, const ResampleAxis& axis) {
  const bool stays = axis.scale == 1 && axis.input_offset + axis.output_offset == 0;
  if (given.mode == InterpolationMode::kNearestNeighbor) {
    return stays && given.nearest == ResampleRule::kHalfUp ? ResampleRule::kSame : given.nearest;
  }
  if (stays) return ResampleRule::kSame;
  return given.antialiased && 1 / axis.scale > 2 ? ResampleRule::kTriangle : ResampleRule::kLinear;
}

ResampleProblem ProblemOf(const Resampling& given) {
  ResampleProblem problem;
  problem.type = given.input.type;
  problem.gradient = given.gradient;
  problem.rank = given.input.rank;
  for (uint32_t d = 0; d < problem.rank; ++d) {
    ResampleAxis& axis = problem.axes[d];
    axis.from = (given.gradient ? given.output : given.input).sizes[d];
    axis.to = (given.gradient ? given.input : given.output).sizes[d];
    axis.scale = given.scales[d];
    axis.input_offset = given.input_offsets.empty() ? 0.5f : given.input_offsets[d];
    axis.output_offset = given.output_offsets.empty() ? -0.5f : given.output_offsets[d];
    axis.rule = RuleOf(given, axis);
    axis.source_stride = given.input.strides[d];
    axis.target_stride = given.output.strides[d];
  }
  return problem;
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(ProblemOf(Read(desc)), context, out);
}

// ONNX's rule, floor(size * scale); for a gradient the size from which it results, if both are integers.
Status InferFrom(OperatorDesc* desc, std::string_view from, std::string_view to, bool gradient) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, from, &given));
  const TensorDesc input = *given;
  const auto* scales = std::get_if<std::vector<float>>(&desc->fields[FindField(*desc->schema, "Scales")]);
  Dimensions sizes = input.sizes;
  const TensorDesc* output = desc->tensor(to);
  const bool is_given = output != nullptr && output->rank > 0;  // then scales do not determine its sizes
  for (uint32_t d = 0; !is_given && scales != nullptr && d < std::min<size_t>(input.rank, scales->size());
       ++d) {
    const double size = input.sizes[d], scale = (*scales)[d];
    if (!(scale > 0)) continue;  // the check refuses it
    const double exact = gradient ? std::floor(size / scale + 0.5) : std::floor(size * scale);
    if (exact > double{std::numeric_limits<uint32_t>::max()}) {
      return InvalidArgument(desc->schema->name, ": Scales[", d, "] is ", (*scales)[d], " and ", from,
                             ".Sizes[", d, "] is ", input.sizes[d], ", which gives a size of ", exact,
                             " for ", to, "; it must be below 2^32");
    }
    sizes[d] = static_cast<uint32_t>(std::max(exact, 1.0));
  }
  FillTensor(desc, to, input.type, sizes, input.rank);
  return {};
}

Status Infer(OperatorDesc* desc) { return InferFrom(desc, "InputTensor", "OutputTensor", false); }
Status InferGradient(OperatorDesc* desc) {
  return InferFrom(desc, "InputGradientTensor", "OutputGradientTensor", true);
}

// The sizes of UPSAMPLE_2D's output.
Status UpsampledSizes(const OperatorDesc& desc, const TensorDesc& input, const Size2D& scale,
                      Dimensions* sizes) {
  *sizes = input.sizes;
  uint32_t &height = (*sizes)[input.rank - 2], &width = (*sizes)[input.rank - 1];
  const uint64_t exact_height = uint64_t{height} * scale.height, exact_width = uint64_t{width} * scale.width;
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if (scale.height == 0 || scale.width == 0 || exact_height > kMost || exact_width > kMost) {
    return InvalidArgument(desc.schema->name, ": ScaleSize is {Width ", scale.width, ", Height ",
                           scale.height, "} but must be at least 1 and give sizes below 2^32");
  }
  height = static_cast<uint32_t>(exact_height);
  width = static_cast<uint32_t>(exact_width);
  return {};
}

Status CheckUpsample(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = Upsample2dDesc::From(desc);
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(UpsampledSizes(desc, typed.input, typed.scale_size, &sizes));
  return CheckSizes(
      desc, "OutputTensor", sizes,
      "its last dimensions are ScaleSize.Height and ScaleSize.Width times those of InputTensor");
}

Status LowerUpsample(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = Upsample2dDesc::From(desc);
  std::array<float, kMaxDimensions> scales;
  scales.fill(1);
  scales[typed.input.rank - 2] = static_cast<float>(typed.scale_size.height);
  scales[typed.input.rank - 1] = static_cast<float>(typed.scale_size.width);
  const ResampleProblem problem =
      ProblemOf({typed.input, typed.output, typed.interpolation_mode, ResampleRule::kHalfUp,
                 std::span(scales).first(typed.input.rank)});
  return ChooseKernel(problem, context, out);
}

Status InferUpsample(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  const auto* scale = std::get_if<Size2D>(&desc->fields[FindField(*desc->schema, "ScaleSize")]);
  if (scale == nullptr || input.rank < 2) return {};
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(UpsampledSizes(*desc, input, *scale, &sizes));
  FillTensor(desc, "OutputTensor", input.type, sizes, input.rank);
  return {};
}

}  // namespace

std::span<const Operator> ResampleOperators() {
  const auto number = [](OperatorType type) { return static_cast<uint32_t>(type); };
  static const Operator operators[] = {
      {number(OperatorType::kUpsample2d), CheckUpsample, LowerUpsample, InferUpsample,
       ResampleProblem::kFamily, kPlainTraits.With(LayoutOfAll)},
      {number(OperatorType::kResample), Check, Lower, Infer, ResampleProblem::kFamily,
       kPlainTraits.With(LayoutOfAll)},
      {number(OperatorType::kResample1), Check, Lower, Infer, ResampleProblem::kFamily,
       kPlainTraits.With(LayoutOfAll)},
      {number(OperatorType::kResample2), Check, Lower, Infer, ResampleProblem::kFamily,
       kPlainTraits.With(LayoutOfAll)},
      {number(OperatorType::kResample3), Check, Lower, Infer, ResampleProblem::kFamily,
       kPlainTraits.With(LayoutOfAll)},
      {number(OperatorType::kResampleGrad), Check, Lower, InferGradient, ResampleProblem::kFamily,
       kPlainTraits},
      {number(OperatorType::kResampleGrad1), Check, Lower, InferGradient, ResampleProblem::kFamily,
       kPlainTraits},
  };
  return operators;
}

namespace family::resample {

void RegisterOperators(OperatorList* all) { all->Add(ResampleOperators()); }

}  // namespace family::resample

}  // namespace anydml
