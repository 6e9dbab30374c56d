#include "ops/pooling/windows.h"

#include <algorithm>

#include "ops/common/checks.h"

namespace anydml {
namespace {

WindowAxis AxisOf(const WindowFields& fields, uint32_t i, uint32_t input, uint32_t windows) {
  return {.input = input,
          .windows = windows,
          .size = fields.sizes[i],
          .stride = fields.strides[i],
          .dilation = fields.dilation(i),
          .start = fields.start[i],
          .end = fields.end[i]};
}

// Windows begin within the padded input. Clients that round the number of windows up have one beyond it if
// strides are larger than windows.
uint64_t MostWindows(const WindowAxis& axis) {
  const uint64_t padded = PaddedSize(axis), extent = ExtentOf(axis), stride = axis.stride;
  const uint64_t begin_within = (padded - 1) / stride + 1;
  return padded < extent ? begin_within : std::max(begin_within, (padded - extent + stride - 1) / stride + 1);
}

Status CheckFields(const OperatorDesc& desc, const WindowFields& fields, const char* input_name,
                   const TensorDesc& input) {
  const auto count = static_cast<uint32_t>(fields.sizes.size());
  if (count + 2 != input.rank) {
    return InvalidArgument(desc.schema->name, ": DimensionCount is ", count, " but ", input_name,
                           ".DimensionCount is ", input.rank, "; it must be ", input.rank - 2,
                           ", the number of spatial dimensions");
  }
  const auto at_least_one = [&](const char* name, uint32_t i, uint32_t value) {
    if (value != 0) return Status();
    return InvalidArgument(desc.schema->name, ": ", name, "[", i, "] is 0 but must be at least 1");
  };
  for (uint32_t i = 0; i < count; ++i) {
    ANYDML_RETURN_IF_ERROR(at_least_one("Strides", i, fields.strides[i]));
    ANYDML_RETURN_IF_ERROR(at_least_one("WindowSize", i, fields.sizes[i]));
    ANYDML_RETURN_IF_ERROR(at_least_one("Dilations", i, fields.dilation(i)));
    // Rounding the number of windows up still gives at least one.
    const WindowAxis axis = AxisOf(fields, i, input.sizes[2 + i], 1);
    if (ExtentOf(axis) >= PaddedSize(axis) + axis.stride) {
      return InvalidArgument(desc.schema->name, ": WindowSize[", i, "] is ", axis.size, ", which covers ",
                             ExtentOf(axis), " elements, but ", input_name, ".Sizes[", 2 + i,
                             "] with its padding is ", PaddedSize(axis), "; it may be at most ",
                             PaddedSize(axis), ", or less than a stride more");
    }
  }
  return {};
}

}  // namespace

Status CheckWindows(const OperatorDesc& desc, const WindowFields& fields, const char* input_name,
                    const char* output_name) {
  const TensorDesc& input = *desc.tensor(input_name);
  const TensorDesc& output = *desc.tensor(output_name);
  ANYDML_RETURN_IF_ERROR(CheckFields(desc, fields, input_name, input));
  for (uint32_t d = 0; d < 2; ++d) {
    if (output.sizes[d] == input.sizes[d]) continue;
    return InvalidArgument(desc.schema->name, ": ", output_name, ".Sizes[", d, "] is ", output.sizes[d],
                           " but must be ", input_name, ".Sizes[", d, "], which is ", input.sizes[d],
                           ": only spatial dimensions are pooled");
  }
  for (uint32_t i = 0; i < fields.sizes.size(); ++i) {
    const WindowAxis axis = AxisOf(fields, i, input.sizes[2 + i], output.sizes[2 + i]);
    const uint64_t most = MostWindows(axis);
    if (axis.windows <= most) continue;
    return InvalidArgument(desc.schema->name, ": ", output_name, ".Sizes[", 2 + i, "] is ", axis.windows,
                           " but must be at most ", most, ": ", input_name, ".Sizes[", 2 + i,
                           "] with its padding is ", PaddedSize(axis), ", Strides[", i, "] is ", axis.stride,
                           " and WindowSize[", i, "] covers ", ExtentOf(axis),
                           "; windows begin within the padded input, and their number may be rounded up");
  }
  return {};
}

PoolingShape ShapeOf(const WindowFields& fields, const TensorDesc& input, const TensorDesc& output) {
  PoolingShape shape = {.batch = input.sizes[0], .channels = input.sizes[1]};
  const auto count = static_cast<uint32_t>(fields.sizes.size());
  for (uint32_t i = 0; i < count; ++i) {
    shape.axes[kSpatialRank - count + i] = AxisOf(fields, i, input.sizes[2 + i], output.sizes[2 + i]);
  }
  return shape;
}

PoolingTensor PoolingTensorOf(const TensorDesc* tensor) {
  if (tensor == nullptr) return {};
  PoolingTensor result = {.type = tensor->type};
  const uint32_t spatial = tensor->rank - 2;
  for (uint32_t d = 0; d < 2; ++d) result.strides[d] = tensor->strides[d];
  for (uint32_t i = 0; i < spatial; ++i) {
    result.strides[kPoolingRank - spatial + i] = tensor->strides[2 + i];
  }
  return result;
}

Status InferWindows(const OperatorDesc& desc, const WindowFields& fields, const TensorDesc& input,
                    Dimensions* sizes) {
  ANYDML_RETURN_IF_ERROR(CheckFields(desc, fields, "InputTensor", input));
  *sizes = input.sizes;
  for (uint32_t i = 0; i < fields.sizes.size(); ++i) {
    const WindowAxis axis = AxisOf(fields, i, input.sizes[2 + i], 1);
    const uint64_t rest = PaddedSize(axis) < ExtentOf(axis) ? 0 : PaddedSize(axis) - ExtentOf(axis);
    (*sizes)[2 + i] = static_cast<uint32_t>(rest / axis.stride + 1);
  }
  return {};
}

}  // namespace anydml
