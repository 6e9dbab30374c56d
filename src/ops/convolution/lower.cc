#include <algorithm>

#include "ops/common/checks.h"
#include "ops/convolution/problem.h"
#include "ops/element/builder.h"
#include "ops/operator_table.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

bool IsBackward(const ConvolutionDesc& desc) { return desc.direction == ConvolutionDirection::kBackward; }

// What the page's formula gives; 0 where the window is larger than the padded input.
uint64_t FormulaSize(const ConvolutionDesc& desc, uint32_t d) {
  const int64_t in = desc.input.sizes[d + 2], taps = desc.filter.sizes[d + 2];
  const int64_t reach = (taps - 1) * desc.dilations[d] + 1;
  const int64_t padding = int64_t{desc.start_padding[d]} + desc.end_padding[d];
  if (IsBackward(desc)) {
    const int64_t size = (in - 1) * desc.strides[d] + reach - padding + desc.output_padding[d];
    return size < 0 ? 0 : static_cast<uint64_t>(size);
  }
  if (in + padding < reach) return 0;
  return static_cast<uint64_t>((in + padding - reach) / desc.strides[d] + 1);
}

Status CheckArrays(const ConvolutionDesc& typed) {
  const uint32_t spatial = typed.input.rank - 2;
  if (typed.strides.size() != spatial) {
    return InvalidArgument("CONVOLUTION: DimensionCount is ", typed.strides.size(), " but must be ", spatial,
                           ": InputTensor.DimensionCount without batch and channel");
  }
  for (uint32_t d = 0; d < spatial; ++d) {
    if (typed.strides[d] == 0)
      return InvalidArgument("CONVOLUTION: Strides[", d, "] is 0 but must be at least 1");
    if (typed.dilations[d] == 0) {
      return InvalidArgument("CONVOLUTION: Dilations[", d, "] is 0 but must be at least 1");
    }
  }
  return {};
}

Status CheckChannels(const ConvolutionDesc& desc) {
  const uint32_t groups = desc.group_count;
  if (groups == 0) return InvalidArgument("CONVOLUTION: GroupCount is 0 but must be at least 1");
  const uint32_t in = desc.input.sizes[1], out = desc.output.sizes[1];
  for (const auto& [name, channels] : {std::pair("InputTensor", in), std::pair("OutputTensor", out)}) {
    if (channels % groups == 0) continue;
    return InvalidArgument("CONVOLUTION: ", name, ".Sizes[1] is ", channels,
                           " but must be a multiple of GroupCount, which is ", groups);
  }
  const bool backward = IsBackward(desc);
  const uint32_t wanted[] = {backward ? in : out, (backward ? out : in) / groups};
  for (uint32_t d = 0; d < 2; ++d) {
    if (desc.filter.sizes[d] == wanted[d]) continue;
    const bool of_input = (d == 0) == backward;
    return InvalidArgument("CONVOLUTION: FilterTensor.Sizes[", d, "] is ", desc.filter.sizes[d],
                           " but must be ", wanted[d], ", the ", of_input ? "input" : "output", " channels",
                           d == 1 ? " of a group" : "");
  }
  if (desc.output.sizes[0] != desc.input.sizes[0]) {
    return InvalidArgument("CONVOLUTION: OutputTensor.Sizes[0] is ", desc.output.sizes[0], " but must be ",
                           desc.input.sizes[0], ", that of InputTensor.Sizes[0]");
  }
  return {};
}

Status CheckBias(const OperatorDesc& desc, const ConvolutionDesc& typed) {
  if (typed.bias == nullptr) return {};
  Dimensions sizes;
  sizes.fill(1);
  sizes[1] = typed.output.sizes[1];
  return CheckSizes(desc, "BiasTensor", sizes, "it has one number for each output channel");
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = ConvolutionDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckArrays(typed));
  ANYDML_RETURN_IF_ERROR(CheckChannels(typed));
  ANYDML_RETURN_IF_ERROR(CheckBias(desc, typed));
  for (uint32_t d = 0; d + 2 < typed.input.rank; ++d) {
    const uint64_t formula = FormulaSize(typed, d);
    if (formula == 0) {
      return InvalidArgument("CONVOLUTION: FilterTensor.Sizes[", d + 2, "] is ", typed.filter.sizes[d + 2],
                             " with Dilations[", d, "] = ", typed.dilations[d],
                             ", which does not fit into InputTensor.Sizes[", d + 2,
                             "] = ", typed.input.sizes[d + 2], " with its padding (", typed.start_padding[d],
                             " and ", typed.end_padding[d], ")");
    }
    // Clients declare backward outputs larger than the formula's (and mean OutputPadding), and forward ones
    // smaller.
    const uint64_t most = formula + typed.output_padding[d];
    if (IsBackward(typed) || typed.output.sizes[d + 2] <= most) continue;
    return InvalidArgument("CONVOLUTION: OutputTensor.Sizes[", d + 2, "] is ", typed.output.sizes[d + 2],
                           " but must be at most ", most, ", the number of windows",
                           typed.output_padding[d] != 0 ? " and the output padding" : "");
  }
  return {};
}

// Spatial dimensions go to the end of the three.
void SetWindows(const ConvolutionDesc& desc, ConvolutionProblem* problem) {
  const uint32_t spatial = desc.input.rank - 2, first = kMaxSpatial - spatial;
  const bool mirrored = desc.mode == ConvolutionMode::kConvolution;
  for (uint32_t d = 0; d < spatial; ++d) {
    ConvolutionWindow& window = problem->windows[first + d];
    window.input = desc.input.sizes[d + 2];
    window.output = desc.output.sizes[d + 2];
    window.taps = desc.filter.sizes[d + 2];
    window.stride = desc.strides[d];
    window.dilation = desc.dilations[d];
    window.start_padding = desc.start_padding[d];
    window.reached = problem->backward
                         ? window.output
                         : static_cast<uint32_t>(std::min<uint64_t>(window.output, FormulaSize(desc, d)));
    problem->input.spatial[first + d] = desc.input.strides[d + 2];
    problem->output.spatial[first + d] = desc.output.strides[d + 2];
    uint64_t stride = desc.filter.strides[d + 2];
    if (mirrored) {
      problem->filter_offset += stride * (window.taps - 1);
      stride = uint64_t{0} - stride;
    }
    problem->filter.spatial[first + d] = stride;
  }
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = ConvolutionDesc::From(desc);
  ConvolutionProblem problem;
  problem.type = typed.input.type;
  problem.batch = typed.input.sizes[0];
  problem.groups = typed.group_count;
  problem.input_channels = typed.input.sizes[1] / typed.group_count;
  problem.output_channels = typed.output.sizes[1] / typed.group_count;
  problem.backward = IsBackward(typed);
  problem.input = {typed.input.strides[0], typed.input.strides[1], {}};
  problem.output = {typed.output.strides[0], typed.output.strides[1], {}};
  const uint64_t outer = typed.filter.strides[0], inner = typed.filter.strides[1];
  problem.filter.batch = problem.backward ? inner : outer;
  problem.filter.channel = problem.backward ? outer : inner;
  problem.filter_group = outer * (problem.backward ? problem.input_channels : problem.output_channels);
  SetWindows(typed, &problem);
  if (typed.bias != nullptr) problem.bias = typed.bias->strides[1];
  if (typed.fused_activation != nullptr) {
    AppendActivation(*typed.fused_activation, &problem.activation, problem.activation.NewRegister());
  }
  return ChooseKernel(OperatorTableOf(context.backend).convolution, problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc *input = nullptr, *filter = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "FilterTensor", &filter));
  OperatorDesc complete = *desc;
  FillTensor(&complete, "OutputTensor", input->type, input->sizes, input->rank);
  const auto typed = ConvolutionDesc::From(complete);
  ANYDML_RETURN_IF_ERROR(CheckArrays(typed));
  if (filter->rank != input->rank) return {};  // validation says so
  Dimensions sizes = input->sizes;
  sizes[1] = IsBackward(typed) ? filter->sizes[1] * typed.group_count : filter->sizes[0];
  for (uint32_t d = 0; d + 2 < input->rank; ++d) {
    const uint64_t padding = IsBackward(typed) ? 0 : typed.output_padding[d];
    sizes[d + 2] = static_cast<uint32_t>(FormulaSize(typed, d) + padding);
  }
  const DataType type = input->type;
  FillTensor(desc, "OutputTensor", type, sizes, input->rank);
  return {};
}

}  // namespace

const Operator& ConvolutionOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kConvolution), Check, Lower, Infer,
                              ConvolutionImplementationNames()};
  return op;
}

}  // namespace anydml
