#include "ops/move/check.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "ops/common/checks.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Type = OperatorType;

Type TypeOf(const OperatorDesc& desc) { return static_cast<Type>(desc.schema->type); }

// Attributes with a number per dimension have as many numbers as the tensors have dimensions.
Status CheckCount(const OperatorDesc& desc, const char* count, const TensorDesc& tensor) {
  if (desc.uint(count) == tensor.rank) return {};
  return InvalidArgument(desc.schema->name, ": ", count, " is ", desc.uint(count), " but must be ",
                         tensor.rank, ", the dimension count of the tensors");
}

Status CheckSlice(const OperatorDesc& desc) {
  const auto slice = SliceDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckCount(desc, "DimensionCount", slice.input));
  Dimensions sizes{};
  for (uint32_t d = 0; d < slice.input.rank; ++d) {
    if (slice.strides[d] == 0) return ZeroElement(desc, "Strides", d);
    if (slice.sizes[d] == 0) return ZeroElement(desc, "Sizes", d);
    const uint64_t last = slice.offsets[d] + (uint64_t{slice.sizes[d]} - 1) * slice.strides[d];
    if (last >= slice.input.sizes[d]) {
      return InvalidArgument(desc.schema->name, ": Offsets[", d, "] ", slice.offsets[d], ", Sizes[", d, "] ",
                             slice.sizes[d], " and Strides[", d, "] ", slice.strides[d], " reach element ",
                             last, " but InputTensor.Sizes[", d, "] is ", slice.input.sizes[d]);
    }
    sizes[d] = slice.sizes[d];
  }
  return CheckSizes(desc, "OutputTensor", sizes, "these are Sizes");
}

// `wide` contains the window, `compact` an element for every stride through it.
template <typename Desc>
Status CheckWindow(const OperatorDesc& desc, const Desc& slice, const TensorDesc& wide, const char* wide_name,
                   const TensorDesc& compact, const char* compact_name) {
  ANYDML_RETURN_IF_ERROR(CheckCount(desc, "DimensionCount", wide));
  for (uint32_t d = 0; d < wide.rank; ++d) {
    const uint64_t offset = slice.input_window_offsets[d], size = slice.input_window_sizes[d];
    const int64_t stride = slice.input_window_strides[d];
    if (stride == 0) return ZeroStride(desc, d);
    if (size == 0) return ZeroElement(desc, "InputWindowSizes", d);
    if (offset + size > wide.sizes[d]) {
      return InvalidArgument(desc.schema->name, ": InputWindowOffsets[", d, "] is ", offset,
                             " and InputWindowSizes[", d, "] is ", size, " but ", wide_name, ".Sizes[", d,
                             "] is ", wide.sizes[d], "; the window must be inside");
    }
    const uint64_t most = 1 + (size - 1) / static_cast<uint64_t>(std::abs(stride));
    if (compact.sizes[d] <= most) continue;
    return InvalidArgument(desc.schema->name, ": ", compact_name, ".Sizes[", d, "] is ", compact.sizes[d],
                           " but must be in [1, ", most, "]: the window has ", size,
                           " elements and its stride is ", stride);
  }
  return {};
}

Status CheckPieces(const OperatorDesc& desc, const TensorDesc& whole, const char* whole_name,
                   std::span<const TensorDesc> pieces, const char* pieces_name, uint32_t axis) {
  if (axis >= whole.rank) {
    return InvalidArgument(desc.schema->name, ": Axis is ", axis, " but ", whole_name, ".DimensionCount is ",
                           whole.rank, "; Axis must be in [0, ", whole.rank - 1, "]");
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    sum += pieces[i].sizes[axis];
    for (uint32_t d = 0; d < whole.rank; ++d) {
      if (d == axis || pieces[i].sizes[d] == whole.sizes[d]) continue;
      return InvalidArgument(desc.schema->name, ": ", pieces_name, "[", i, "].Sizes[", d, "] is ",
                             pieces[i].sizes[d], " but must be ", whole.sizes[d], ", that of ", whole_name,
                             ": only Sizes[Axis=", axis, "] may differ");
    }
  }
  if (sum == whole.sizes[axis]) return {};
  return InvalidArgument(desc.schema->name, ": the Sizes[Axis=", axis, "] of ", pieces_name, " add up to ",
                         sum, " but must add up to ", whole.sizes[axis], ", that of ", whole_name);
}

Status CheckTile(const OperatorDesc& desc) {
  const auto tile = TileDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckCount(desc, "RepeatsCount", tile.input));
  for (uint32_t d = 0; d < tile.input.rank; ++d) {
    if (tile.repeats[d] == 0) return ZeroElement(desc, "Repeats", d);
    const uint64_t size = uint64_t{tile.input.sizes[d]} * tile.repeats[d];
    if (tile.output.sizes[d] == size) continue;
    return InvalidArgument(desc.schema->name, ": OutputTensor.Sizes[", d, "] is ", tile.output.sizes[d],
                           " but must be ", size, ": InputTensor.Sizes[", d, "] times Repeats[", d, "]");
  }
  return {};
}

template <typename Desc>
Status CheckPadding(const OperatorDesc& desc, const Desc& padding) {
  ANYDML_RETURN_IF_ERROR(CheckCount(desc, "DimensionCount", padding.input));
  for (uint32_t d = 0; d < padding.input.rank; ++d) {
    const uint64_t size =
        uint64_t{padding.input.sizes[d]} + padding.start_padding[d] + padding.end_padding[d];
    if (padding.output.sizes[d] == size) continue;
    return InvalidArgument(desc.schema->name, ": OutputTensor.Sizes[", d, "] is ", padding.output.sizes[d],
                           " but must be ", size, ": InputTensor.Sizes[", d, "], StartPadding[", d,
                           "] and EndPadding[", d, "] together");
  }
  return {};
}

Status CheckDepthSpace(const OperatorDesc& desc) {
  Dimensions sizes{};
  ANYDML_RETURN_IF_ERROR(DepthSpaceSizes(desc, *desc.tensor("InputTensor"), &sizes));
  return CheckSizes(desc, "OutputTensor", sizes, "blocks of pixels are channels");
}

}  // namespace

Status ZeroElement(const OperatorDesc& desc, std::string_view field, uint32_t index) {
  return InvalidArgument(desc.schema->name, ": ", field, "[", index, "] is 0 but must be at least 1");
}

Status ZeroStride(const OperatorDesc& desc, uint32_t index) {
  return InvalidArgument(desc.schema->name, ": InputWindowStrides[", index,
                         "] is 0 but must be another number");
}

Status TooLarge(const OperatorDesc& desc, std::string_view what, uint64_t size) {
  return InvalidArgument(desc.schema->name, ": ", what, " is ", size, " but must be below 2^32");
}

Status DepthSpaceSizes(const OperatorDesc& desc, const TensorDesc& input, Dimensions* sizes) {
  const uint32_t block = desc.uint("BlockSize");
  if (block == 0) return InvalidArgument(desc.schema->name, ": BlockSize is 0 but must be at least 1");
  const bool to_space = TypeOf(desc) == Type::kDepthToSpace || TypeOf(desc) == Type::kDepthToSpace1;
  const auto divisible = [&](uint32_t d, uint64_t by, const char* what) -> Status {
    if (input.sizes[d] % by == 0) return {};
    return InvalidArgument(desc.schema->name, ": InputTensor.Sizes[", d, "] is ", input.sizes[d],
                           " but must be a multiple of ", by, ", ", what);
  };
  const auto times_block = [&](uint32_t d, uint32_t* size) -> Status {
    const uint64_t product = uint64_t{*size} * block;
    if (product > std::numeric_limits<uint32_t>::max()) {
      return TooLarge(desc,
                      StrCat("InputTensor.Sizes[", d, "] times BlockSize", d == 1 ? " or its square" : ""),
                      product);
    }
    *size = static_cast<uint32_t>(product);
    return {};
  };
  uint32_t n = input.sizes[0], c = input.sizes[1], h = input.sizes[2], w = input.sizes[3];
  if (to_space) {
    const uint64_t square = uint64_t{block} * block;
    ANYDML_RETURN_IF_ERROR(divisible(1, square, "the square of BlockSize"));
    ANYDML_RETURN_IF_ERROR(times_block(2, &h));
    ANYDML_RETURN_IF_ERROR(times_block(3, &w));
    *sizes = {n, static_cast<uint32_t>(c / square), h, w};
  } else {
    ANYDML_RETURN_IF_ERROR(divisible(2, block, "BlockSize"));
    ANYDML_RETURN_IF_ERROR(divisible(3, block, "BlockSize"));
    ANYDML_RETURN_IF_ERROR(times_block(1, &c));
    ANYDML_RETURN_IF_ERROR(times_block(1, &c));  // and once more, for the square
    *sizes = {n, c, h / block, w / block};
  }
  return {};
}

Status CheckMove(const OperatorDesc& desc, FeatureLevel) {
  switch (TypeOf(desc)) {
    case Type::kSlice:
      return CheckSlice(desc);
    case Type::kSlice1: {
      const auto slice = Slice1Desc::From(desc);
      return CheckWindow(desc, slice, slice.input, "InputTensor", slice.output, "OutputTensor");
    }
    case Type::kSliceGrad: {
      const auto slice = SliceGradDesc::From(desc);
      return CheckWindow(desc, slice, slice.output_gradient, "OutputGradientTensor", slice.input_gradient,
                         "InputGradientTensor");
    }
    case Type::kSplit: {
      const auto split = SplitDesc::From(desc);
      return CheckPieces(desc, split.input, "InputTensor", split.outputs, "OutputTensors", split.axis);
    }
    case Type::kJoin: {
      const auto join = JoinDesc::From(desc);
      return CheckPieces(desc, join.output, "OutputTensor", join.inputs, "InputTensors", join.axis);
    }
    case Type::kTile:
      return CheckTile(desc);
    case Type::kPadding:
      return CheckPadding(desc, PaddingDesc::From(desc));
    case Type::kPadding1:
      return CheckPadding(desc, Padding1Desc::From(desc));
    default:
      return CheckDepthSpace(desc);
  }
}

}  // namespace anydml
