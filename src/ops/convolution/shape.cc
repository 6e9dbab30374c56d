#include "ops/convolution/shape.h"

#include <algorithm>
#include <limits>

namespace anydml {
namespace {

uint32_t OutputPadding(const ConvolutionFields& fields, uint32_t d) {
  return fields.output_padding.empty() ? 0 : fields.output_padding[d];
}

uint64_t Padding(const ConvolutionFields& fields, uint32_t d) {
  return uint64_t{fields.start_padding[d]} + fields.end_padding[d];
}

// The distance from the first tap to the last one. A product of two 32-bit numbers leaves room for adding two
// more.
uint64_t Reach(const ConvolutionFields& fields, uint32_t d) {
  return uint64_t{fields.filter.sizes[d + 2] - 1} * fields.dilations[d] + 1;
}

// Of a backward output without padding; saturates at 64 bits.
uint64_t UnpaddedSize(const ConvolutionFields& fields, uint32_t d) {
  const uint64_t steps = uint64_t{fields.input.sizes[d + 2] - 1} * fields.strides[d];
  uint64_t size = Reach(fields, d);
  return __builtin_add_overflow(size, steps + OutputPadding(fields, d), &size) ? ~uint64_t{0} : size;
}

// The result of the documentation's formula; 0 if the window is larger than the padded input, or if padding
// leaves nothing.
uint64_t FormulaSize(const ConvolutionFields& fields, uint32_t d) {
  const uint64_t padding = Padding(fields, d);
  if (fields.backward) {
    const uint64_t size = UnpaddedSize(fields, d);
    return size < padding ? 0 : size - padding;
  }
  const uint64_t padded = fields.input.sizes[d + 2] + padding, reach = Reach(fields, d);
  return padded < reach ? 0 : (padded - reach) / fields.strides[d] + 1;
}

Status CheckArrays(const ConvolutionFields& fields) {
  const uint32_t spatial = fields.input.rank - 2;
  if (fields.strides.size() != spatial) {
    return InvalidArgument(fields.name, ": DimensionCount is ", fields.strides.size(), " but must be ",
                           spatial, ": InputTensor.DimensionCount without batch and channel");
  }
  for (uint32_t d = 0; d < spatial; ++d) {
    for (const auto& [name, values] :
         {std::pair("Strides", fields.strides), std::pair("Dilations", fields.dilations)}) {
      if (values[d] == 0)
        return InvalidArgument(fields.name, ": ", name, "[", d, "] is 0 but must be at least 1");
    }
  }
  return {};
}

Status CheckChannels(const ConvolutionFields& fields, const TensorDesc& output) {
  if (fields.groups == 0) return InvalidArgument(fields.name, ": GroupCount is 0 but must be at least 1");
  const uint32_t in = fields.input.sizes[1], out = output.sizes[1];
  for (const auto& [name, channels] : {std::pair("InputTensor", in), std::pair("OutputTensor", out)}) {
    if (channels % fields.groups == 0) continue;
    return InvalidArgument(fields.name, ": ", name, ".Sizes[1] is ", channels,
                           " but must be a multiple of GroupCount, which is ", fields.groups);
  }
  const uint32_t wanted[] = {fields.backward ? in : out, (fields.backward ? out : in) / fields.groups};
  for (uint32_t d = 0; d < 2; ++d) {
    if (fields.filter.sizes[d] == wanted[d]) continue;
    const bool of_input = (d == 0) == fields.backward;
    return InvalidArgument(fields.name, ": FilterTensor.Sizes[", d, "] is ", fields.filter.sizes[d],
                           " but must be ", wanted[d], ", the ", of_input ? "input" : "output", " channels",
                           d == 1 ? " of a group" : "");
  }
  if (output.sizes[0] == fields.input.sizes[0]) return {};
  return InvalidArgument(fields.name, ": OutputTensor.Sizes[0] is ", output.sizes[0], " but must be ",
                         fields.input.sizes[0], ", that of InputTensor.Sizes[0]");
}

// Spatial dimensions are the last of the three.
void SetWindows(const ConvolutionFields& fields, const TensorDesc& output, ConvolutionShape* shape) {
  const uint32_t spatial = fields.input.rank - 2, first = kMaxSpatial - spatial;
  for (uint32_t d = 0; d < spatial; ++d) {
    ConvolutionWindow& window = shape->windows[first + d];
    window.input = fields.input.sizes[d + 2];
    window.output = output.sizes[d + 2];
    window.taps = fields.filter.sizes[d + 2];
    window.stride = fields.strides[d];
    window.dilation = fields.dilations[d];
    window.start_padding = fields.start_padding[d];
    window.reached = window.output;
    if (!fields.backward) {
      window.reached = static_cast<uint32_t>(std::min<uint64_t>(window.output, FormulaSize(fields, d)));
    }
    shape->input.spatial[first + d] = fields.input.strides[d + 2];
    shape->output.spatial[first + d] = output.strides[d + 2];
    uint64_t stride = fields.filter.strides[d + 2];
    if (fields.mirrored) {
      shape->filter.offset += stride * (window.taps - 1);
      stride = uint64_t{0} - stride;
    }
    shape->filter.spatial[first + d] = stride;
  }
}

// Clients declare outputs larger than the formula's and mean OutputPadding, which is less than a stride or a
// dilation. So outputs are checked only if padding removes everything.
Status CheckBackward(const ConvolutionFields& fields, uint32_t d, uint32_t output) {
  const uint64_t unpadded = UnpaddedSize(fields, d), padding = Padding(fields, d);
  const uint32_t step = std::max(fields.strides[d], fields.dilations[d]);
  if (padding < unpadded || padding - unpadded + output < step) return {};
  return InvalidArgument(fields.name, ": StartPadding[", d, "] and EndPadding[", d, "] are ",
                         fields.start_padding[d], " and ", fields.end_padding[d],
                         " but together must be less than ", unpadded, ", what InputTensor.Sizes[", d + 2,
                         "] = ", fields.input.sizes[d + 2], " makes without them");
}

}  // namespace

Status CheckConvolution(const ConvolutionFields& fields, const TensorDesc& output) {
  ANYDML_RETURN_IF_ERROR(CheckArrays(fields));
  ANYDML_RETURN_IF_ERROR(CheckChannels(fields, output));
  for (uint32_t d = 0; d + 2 < fields.input.rank; ++d) {
    if (fields.backward) {
      ANYDML_RETURN_IF_ERROR(CheckBackward(fields, d, output.sizes[d + 2]));
      continue;
    }
    const uint64_t formula = FormulaSize(fields, d);
    if (formula == 0) {
      return InvalidArgument(fields.name, ": FilterTensor.Sizes[", d + 2, "] is ", fields.filter.sizes[d + 2],
                             " with Dilations[", d, "] = ", fields.dilations[d],
                             ", which does not fit into InputTensor.Sizes[", d + 2,
                             "] = ", fields.input.sizes[d + 2], " with its padding (",
                             fields.start_padding[d], " and ", fields.end_padding[d], ")");
    }
    // Clients may declare smaller ones.
    const uint64_t most = formula + OutputPadding(fields, d);
    if (output.sizes[d + 2] <= most) continue;
    return InvalidArgument(fields.name, ": OutputTensor.Sizes[", d + 2, "] is ", output.sizes[d + 2],
                           " but must be at most ", most, ", the number of windows",
                           OutputPadding(fields, d) != 0 ? " and the output padding" : "");
  }
  return {};
}

ConvolutionShape ShapeOf(const ConvolutionFields& fields, const TensorDesc& output) {
  ConvolutionShape shape;
  shape.backward = fields.backward;
  shape.outer = {fields.input.sizes[0], fields.groups};
  shape.input_channels = fields.input.sizes[1] / fields.groups;
  shape.output_channels = output.sizes[1] / fields.groups;
  const auto image = [](const TensorDesc& tensor, uint64_t channels) {
    ConvolutionTensor result;
    result.outer = {tensor.strides[0], channels * tensor.strides[1]};
    result.channel = tensor.strides[1];
    return result;
  };
  shape.input = image(fields.input, shape.input_channels);
  shape.output = image(output, shape.output_channels);
  const uint64_t outer = fields.filter.strides[0], inner = fields.filter.strides[1];
  shape.filter.outer = {0, outer * (shape.backward ? shape.input_channels : shape.output_channels)};
  shape.filter.output_channel = shape.backward ? inner : outer;
  shape.filter.channel = shape.backward ? outer : inner;
  SetWindows(fields, output, &shape);
  return shape;
}

Status InferConvolution(const ConvolutionFields& fields, Dimensions* sizes) {
  *sizes = fields.input.sizes;
  // Validation reports it.
  if (fields.filter.rank != fields.input.rank || fields.input.rank < 3) return {};
  ANYDML_RETURN_IF_ERROR(CheckArrays(fields));
  (*sizes)[1] = fields.backward ? fields.filter.sizes[1] * fields.groups : fields.filter.sizes[0];
  for (uint32_t d = 0; d + 2 < fields.input.rank; ++d) {
    const uint64_t padding = fields.backward ? 0 : OutputPadding(fields, d);
    constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
    (*sizes)[d + 2] = static_cast<uint32_t>(std::min(FormulaSize(fields, d), kMost - padding) + padding);
  }
  return {};
}

}  // namespace anydml
