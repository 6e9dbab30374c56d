#include "ops/move/maps.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "ops/move/border_maps.h"
#include "ops/numbers/math/saturate.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Type = OperatorType;

// A box of `sizes` at the beginning of both tensors.
AffineMap BoxMap(const Dimensions& sizes, const TensorDesc& from, const TensorDesc& to) {
  AffineMap map;
  for (uint32_t d = 0; d < to.rank; ++d) map.Append(sizes[d], StrideOf(from, d), StrideOf(to, d));
  return map;
}

// Element c of `compact` is element start + step * c of `wide`.
struct Window {
  std::array<int64_t, kMaxDimensions> start{};
  std::array<int64_t, kMaxDimensions> step{};
};

AffineMap WindowMap(const Window& window, const TensorDesc& compact, const TensorDesc& wide, bool to_wide) {
  AffineMap map;
  for (uint32_t d = 0; d < compact.rank; ++d) {
    const int64_t inside = StrideOf(compact, d), outside = StrideOf(wide, d) * window.step[d];
    (to_wide ? map.to : map.from) += window.start[d] * StrideOf(wide, d);
    map.Append(compact.sizes[d], to_wide ? inside : outside, to_wide ? outside : inside);
  }
  return map;
}

template <typename Desc>
Window WindowOf(const Desc& desc, uint32_t rank) {
  Window window;
  for (uint32_t d = 0; d < rank; ++d) {
    window.step[d] = desc.input_window_strides[d];
    window.start[d] =
        WindowStart(desc.input_window_offsets[d], desc.input_window_sizes[d], desc.input_window_strides[d]);
  }
  return window;
}

Copies SliceCopies(const OperatorDesc& desc) {
  const auto slice = SliceDesc::From(desc);
  Window window;
  for (uint32_t d = 0; d < slice.input.rank; ++d) {
    window.start[d] = slice.offsets[d];
    window.step[d] = slice.strides[d];
  }
  return {{.map = WindowMap(window, slice.output, slice.input, /*to_wide=*/false)}};
}

Copies Slice1Copies(const OperatorDesc& desc) {
  const auto slice = Slice1Desc::From(desc);
  const Window window = WindowOf(slice, slice.input.rank);
  return {{.map = WindowMap(window, slice.output, slice.input, /*to_wide=*/false)}};
}

// The elements of `output` around the box of `sizes` at `start`: slabs, which in the dimensions before their
// own are as wide as the box.
void AppendFrame(const TensorDesc& output, const Window& box, const Dimensions& sizes, Copies* copies) {
  const auto append = [&](uint32_t across, uint64_t begin, uint64_t end) {
    if (begin == end) return;
    MoveCopy slab = {.source = MoveCopy::kFill};
    for (uint32_t d = 0; d < output.rank; ++d) {
      const int64_t stride = StrideOf(output, d);
      if (d < across) slab.map.to += box.start[d] * stride;
      if (d == across) slab.map.to += static_cast<int64_t>(begin) * stride;
      slab.map.Append(d < across ? sizes[d] : d == across ? end - begin : output.sizes[d], 0, stride);
    }
    copies->push_back(slab);
  };
  for (uint32_t d = 0; d < output.rank; ++d) {
    const auto begin = static_cast<uint64_t>(box.start[d]);
    append(d, 0, begin);
    append(d, begin + sizes[d], output.sizes[d]);
  }
}

MoveCopy FillAll(const TensorDesc& output) {
  MoveCopy fill = {.source = MoveCopy::kFill};
  for (uint32_t d = 0; d < output.rank; ++d) fill.map.Append(output.sizes[d], 0, StrideOf(output, d));
  return fill;
}

std::vector<Copies> SliceGradStages(const OperatorDesc& desc) {
  const auto slice = SliceGradDesc::From(desc);
  const Window window = WindowOf(slice, slice.output_gradient.rank);
  Copies copies = {{.map = WindowMap(window, slice.input_gradient, slice.output_gradient, /*to_wide=*/true)}};
  const bool is_box = std::all_of(window.step.begin(), window.step.begin() + slice.output_gradient.rank,
                                  [](int64_t step) { return step == 1; });
  if (!is_box) return {{FillAll(slice.output_gradient)}, copies};
  AppendFrame(slice.output_gradient, window, slice.input_gradient.sizes, &copies);
  return {copies};
}

Copies SplitCopies(const OperatorDesc& desc) {
  const auto split = SplitDesc::From(desc);
  Copies copies;
  int64_t at = 0;
  for (uint32_t i = 0; i < split.outputs.size(); ++i) {
    const TensorDesc& output = split.outputs[i];
    copies.push_back({.to = i, .map = BoxMap(output.sizes, split.input, output)});
    copies.back().map.from = at * StrideOf(split.input, split.axis);
    at += output.sizes[split.axis];
  }
  return copies;
}

Copies JoinCopies(const OperatorDesc& desc) {
  const auto join = JoinDesc::From(desc);
  Copies copies;
  int64_t at = 0;
  for (uint32_t i = 0; i < join.inputs.size(); ++i) {
    const TensorDesc& input = join.inputs[i];
    copies.push_back({.from = i, .map = BoxMap(input.sizes, input, join.output)});
    copies.back().map.to = at * StrideOf(join.output, join.axis);
    at += input.sizes[join.axis];
  }
  return copies;
}

Copies TileCopies(const OperatorDesc& desc) {
  const auto tile = TileDesc::From(desc);
  MoveCopy copy;
  for (uint32_t d = 0; d < tile.input.rank; ++d) {
    const uint32_t size = tile.input.sizes[d];
    copy.map.Append(tile.repeats[d], 0, size * StrideOf(tile.output, d));
    copy.map.Append(size, StrideOf(tile.input, d), StrideOf(tile.output, d));
  }
  return {copy};
}

// Pixels of `space` are blocks of channels of `depth`.
AffineMap DepthSpaceMap(const TensorDesc& depth, const TensorDesc& space, uint32_t block,
                        DepthSpaceOrder order, bool to_space) {
  AffineMap map;
  const auto append = [&](uint64_t size, int64_t in_depth, int64_t in_space) {
    map.Append(size, to_space ? in_depth : in_space, to_space ? in_space : in_depth);
  };
  const int64_t edge = block, channels = space.sizes[1];
  const bool depth_first = order == DepthSpaceOrder::kDepthColumnRow;
  const int64_t channel = StrideOf(depth, 1) * (depth_first ? 1 : edge * edge);
  const int64_t column = StrideOf(depth, 1) * (depth_first ? channels : 1);  // within a block
  append(space.sizes[0], StrideOf(depth, 0), StrideOf(space, 0));
  append(space.sizes[1], channel, StrideOf(space, 1));
  append(depth.sizes[2], StrideOf(depth, 2), StrideOf(space, 2) * edge);
  append(block, column * edge, StrideOf(space, 2));
  append(depth.sizes[3], StrideOf(depth, 3), StrideOf(space, 3) * edge);
  append(block, column, StrideOf(space, 3));
  return map;
}

Copies DepthSpaceCopies(const OperatorDesc& desc, bool to_space, bool has_order) {
  const TensorDesc &input = *desc.tensor("InputTensor"), &output = *desc.tensor("OutputTensor");
  const auto order =
      has_order ? static_cast<DepthSpaceOrder>(desc.uint("Order")) : DepthSpaceOrder::kDepthColumnRow;
  const TensorDesc &depth = to_space ? input : output, &space = to_space ? output : input;
  return {{.map = DepthSpaceMap(depth, space, desc.uint("BlockSize"), order, to_space)}};
}

template <typename Desc>
std::vector<Copies> PaddingStagesOf(const Desc& desc) {
  if (desc.padding_mode != PaddingMode::kConstant) {
    return BorderStages(desc.input, desc.output, desc.padding_mode, desc.start_padding, desc.end_padding);
  }
  Window window;
  window.step.fill(1);
  std::copy(desc.start_padding.begin(), desc.start_padding.end(), window.start.begin());
  Copies copies = {{.map = WindowMap(window, desc.input, desc.output, /*to_wide=*/true)}};
  AppendFrame(desc.output, window, desc.input.sizes, &copies);
  return {copies};
}

// A FLOAT as an element; for integers truncated and saturated.
uint64_t FillBits(float value, DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return std::bit_cast<uint32_t>(value);
    case DataType::kFloat16:
      return std::bit_cast<uint16_t>(ToHalf(value));
    case DataType::kFloat64:
      return std::bit_cast<uint64_t>(double{value});
    default:
      return SaturatedBits(value, type);
  }
}

std::vector<Copies> StagesOf(const OperatorDesc& desc) {
  switch (static_cast<Type>(desc.schema->type)) {
    case Type::kSlice:
      return {SliceCopies(desc)};
    case Type::kSlice1:
      return {Slice1Copies(desc)};
    case Type::kSliceGrad:
      return SliceGradStages(desc);
    case Type::kSplit:
      return {SplitCopies(desc)};
    case Type::kJoin:
      return {JoinCopies(desc)};
    case Type::kTile:
      return {TileCopies(desc)};
    case Type::kPadding:
      return PaddingStagesOf(PaddingDesc::From(desc));
    case Type::kPadding1:
      return PaddingStagesOf(Padding1Desc::From(desc));
    case Type::kDepthToSpace:
      return {DepthSpaceCopies(desc, /*to_space=*/true, /*has_order=*/false)};
    case Type::kDepthToSpace1:
      return {DepthSpaceCopies(desc, /*to_space=*/true, /*has_order=*/true)};
    case Type::kSpaceToDepth:
      return {DepthSpaceCopies(desc, /*to_space=*/false, /*has_order=*/false)};
    default:
      return {DepthSpaceCopies(desc, /*to_space=*/false, /*has_order=*/true)};
  }
}

}  // namespace

MoveProblem BuildMoveProblem(const OperatorDesc& desc) {
  MoveProblem problem;
  problem.type = desc.outputs()[0]->type;
  problem.stages = StagesOf(desc);
  problem.desc = desc;
  if (desc.schema->type == static_cast<uint32_t>(Type::kPadding)) {
    problem.fill = FillBits(PaddingDesc::From(desc).padding_value, problem.type);
  } else if (desc.schema->type == static_cast<uint32_t>(Type::kPadding1)) {
    std::memcpy(&problem.fill, Padding1Desc::From(desc).padding_value.bytes.data(), sizeof(uint64_t));
  }
  return problem;
}

}  // namespace anydml
