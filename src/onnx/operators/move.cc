// Operators that move elements.
#include <algorithm>
#include <numeric>

#include "onnx/host/host.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

Status Transpose(Lowering& n) {
  const size_t rank = n.rank(0);
  std::vector<uint32_t> order(rank);
  std::vector<int64_t> perm = n.Ints("perm");
  if (perm.empty()) {
    for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(rank - 1 - i));
  }
  std::vector<uint32_t> sorted;
  ANYDML_RETURN_IF_ERROR(ResolveAxes(perm, rank, &sorted));
  if (sorted.size() != rank)
    return InvalidArgument("perm has ", perm.size(), " elements; the input has rank ", rank);
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    ANYDML_RETURN_IF_ERROR(ResolveAxis(perm[i], rank, &order[i]));
    shape.push_back(n.shape(0)[order[i]]);
  }
  if (rank < 2) {
    n.Forward(0, 0, shape);
    return {};
  }
  View y;
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, Permuted(n.In(0), order), &y));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status Expand(Lowering& n) {
  Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(0), n.HostInts(1), &shape));
  if (!ElementCount(shape)) return InvalidArgument("shape ", ShapeToString(shape), " is none");
  if (ElementCount(shape) == ElementCount(n.shape(0))) {
    n.Forward(0, 0, shape);
    return {};
  }
  View y;
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, Broadcast(n.In(0), shape), &y));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status Concat(Lowering& n) {
  uint32_t axis = 0;
  if (n.version() >= 4) ANYDML_RETURN_IF_ERROR(NeedAttribute(n, "axis"));
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", 1), n.rank(0), &axis));
  Shape shape = n.shape(0);
  std::vector<View> views;
  shape[axis] = 0;
  for (size_t i = 0; i < n.inputs(); ++i) {
    Shape other = n.shape(i);
    if (other.size() != shape.size()) return InvalidArgument("input ", i, " has rank ", other.size());
    if (other[axis] > INT64_MAX - shape[axis]) return InvalidArgument("the result is too large");
    shape[axis] += other[axis];
    other[axis] = shape[axis];
    if (other != shape) {
      return InvalidArgument("input ", i, " has shape ", ShapeToString(n.shape(i)), ", input 0 ",
                             ShapeToString(n.shape(0)));
    }
    if (ElementCount(n.shape(i)) != 0) views.push_back(n.In(i));
    if (views.size() == 1 && ElementCount(n.shape(i)) != 0) n.Forward(0, i, n.shape(i));
  }
  if (views.size() == 1) return {};  // the others have no elements
  View y = n.New(n.dml_type(0), shape);
  const DML_TENSOR_DESC* const inputs = n.graph().InArray(views);
  const DML_JOIN_OPERATOR_DESC desc{static_cast<UINT>(views.size()), inputs, n.graph().Out(&y), axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_JOIN, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status Split(Lowering& n) {
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", 0), n.rank(0), &axis));
  std::vector<int64_t> sizes;
  ANYDML_RETURN_IF_ERROR(SplitSizes(n, n.Has(1), n.HostInts(1), n.shape(0)[axis], n.outputs(), &sizes));
  const View x = n.In(0);
  std::vector<View> parts;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = n.shape(0);
    shape[axis] = sizes[i];
    if (ElementCount(shape) == 0) {
      n.Return(i, MakeTensor(n.type(0), shape, std::vector<std::byte>()));
      continue;
    }
    parts.push_back(n.New(x.type, shape));
    numbers.push_back(i);
  }
  if (parts.empty()) return {};
  if (parts.size() == 1) {
    n.Forward(numbers[0], 0, n.shape(0));
    return {};
  }
  const DML_TENSOR_DESC* const input = n.graph().In(x);
  const DML_SPLIT_OPERATOR_DESC desc{input, static_cast<UINT>(parts.size()), n.graph().OutArray(parts), axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_SPLIT, desc));
  for (size_t i = 0; i < parts.size(); ++i) n.Return(numbers[i], parts[i], n.type(0), ShapeOf(parts[i]));
  return {};
}

Status SliceView(Lowering& n, const View& x, const std::vector<SliceRange>& ranges, View* y) {
  std::vector<UINT> offsets, sizes;
  std::vector<INT> strides;
  Shape shape;
  for (const SliceRange& range : ranges) {
    const int64_t step = std::clamp<int64_t>(range.step, INT32_MIN + 1, INT32_MAX);
    const int64_t length = range.count == 0 ? 0 : (range.count - 1) * std::abs(step) + 1;
    // A window with a negative step begins at its last element.
    offsets.push_back(static_cast<UINT>(step > 0 ? range.start : range.start - length + 1));
    sizes.push_back(static_cast<UINT>(length));
    strides.push_back(static_cast<INT>(step));
    shape.push_back(range.count);
  }
  *y = n.New(x.type, shape);
  const DML_SLICE1_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(y), static_cast<UINT>(offsets.size()),
                                      offsets.data(),  sizes.data(),     strides.data()};
  return n.graph().Add(DML_OPERATOR_SLICE1, desc);
}

Status Slice(Lowering& n) {
  const bool attributes = n.version() < 10;
  std::vector<SliceRange> ranges;
  ANYDML_RETURN_IF_ERROR(ResolveSlice(n.shape(0), attributes ? n.Ints("starts") : n.HostInts(1),
                                      attributes ? n.Ints("ends") : n.HostInts(2),
                                      attributes ? n.Ints("axes") : n.HostInts(3), n.HostInts(4), &ranges));
  Shape shape;
  bool whole = true;
  for (size_t i = 0; i < ranges.size(); ++i) {
    shape.push_back(ranges[i].count);
    whole &= ranges[i].count == n.shape(0)[i] && ranges[i].step > 0;
  }
  if (whole) {
    n.Forward(0, 0, shape);
    return {};
  }
  View y;
  ANYDML_RETURN_IF_ERROR(SliceView(n, n.In(0), ranges, &y));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status Tile(Lowering& n) {
  const std::vector<int64_t> repeats = n.HostInts(1);
  if (repeats.size() != n.rank(0))
    return InvalidArgument("repeats has ", repeats.size(), " elements; the input has rank ", n.rank(0));
  Shape shape = n.shape(0);
  std::vector<UINT> counts;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0 || repeats[i] > UINT32_MAX) return InvalidArgument("a repeat of ", repeats[i]);
    if (repeats[i] != 0 && shape[i] > (int64_t{1} << 62) / repeats[i])
      return InvalidArgument("the result is too large");
    shape[i] *= repeats[i];
    counts.push_back(static_cast<UINT>(repeats[i]));
  }
  if (shape == n.shape(0)) {
    n.Forward(0, 0, shape);
    return {};
  }
  const View x = n.In(0);
  View y = n.New(x.type, shape);
  const DML_TILE_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y), static_cast<UINT>(counts.size()),
                                    counts.data()};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_TILE, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

// Pad's amounts at both ends of every dimension.
Status ReadPads(Lowering& n, std::vector<int64_t>* begin, std::vector<int64_t>* end) {
  const size_t rank = n.rank(0);
  const std::vector<int64_t> pads = n.version() < 11 ? n.Ints("pads") : n.HostInts(1);
  std::vector<uint32_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0u);
  if (n.Has(3)) {
    axes.clear();
    for (const int64_t axis : n.HostInts(3))
      ANYDML_RETURN_IF_ERROR(ResolveAxis(axis, rank, &axes.emplace_back()));
  }
  if (pads.size() != 2 * axes.size()) {
    return InvalidArgument("pads has ", pads.size(), " elements; ", 2 * axes.size(), " are needed");
  }
  begin->assign(rank, 0);
  end->assign(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    for (const int64_t pad : {pads[i], pads[i + axes.size()]}) {
      if (pad > INT32_MAX || pad < -INT32_MAX) return InvalidArgument("a padding of ", pad);
    }
    (*begin)[axes[i]] = pads[i];
    (*end)[axes[i]] = pads[i + axes.size()];
  }
  return {};
}

Status PaddingMode(const std::string& name, DML_PADDING_MODE* mode) {
  if (name == "constant")
    *mode = DML_PADDING_MODE_CONSTANT;
  else if (name == "edge")
    *mode = DML_PADDING_MODE_EDGE;
  else if (name == "reflect")
    *mode = DML_PADDING_MODE_REFLECTION;
  else if (name == "wrap")
    *mode = DML_PADDING_MODE_WRAP;
  else
    return Unsupported("mode ", name.substr(0, 40));
  return {};
}

Status Pad(Lowering& n) {
  std::vector<int64_t> begin, end;
  ANYDML_RETURN_IF_ERROR(ReadPads(n, &begin, &end));
  DML_PADDING_MODE mode{};
  ANYDML_RETURN_IF_ERROR(PaddingMode(n.Text("mode", "constant"), &mode));
  View x = n.In(0);
  // Negative pads remove elements, which PADDING1 cannot do.
  std::vector<SliceRange> ranges;
  Shape shape = n.shape(0);
  std::vector<UINT> starts, ends;
  bool cuts = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t front = std::max<int64_t>(0, -begin[i]), back = std::max<int64_t>(0, -end[i]);
    ranges.push_back({front, 1, std::max<int64_t>(0, shape[i] - front - back)});
    cuts |= front > 0 || back > 0;
    starts.push_back(static_cast<UINT>(std::max<int64_t>(0, begin[i])));
    ends.push_back(static_cast<UINT>(std::max<int64_t>(0, end[i])));
    shape[i] = ranges[i].count + starts[i] + ends[i];
  }
  if (cuts) {
    View part;
    ANYDML_RETURN_IF_ERROR(SliceView(n, x, ranges, &part));
    x = part;
  }
  DML_SCALAR_UNION value = Scalar(x.type, n.version() < 11 ? n.Float("value", 0) : 0);
  if (const Tensor* const given = n.Host(2); given != nullptr) value = ScalarBits(*given, 0);
  View y = n.New(x.type, shape);
  if (x.empty() && !y.empty() && mode == DML_PADDING_MODE_CONSTANT) {
    const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC fill{n.graph().Out(&y),
                                                     static_cast<DML_TENSOR_DATA_TYPE>(x.type), value};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_FILL_VALUE_CONSTANT, fill));
    n.Return(0, y, n.type(0), shape);
    return {};
  }
  const DML_PADDING1_OPERATOR_DESC desc{n.graph().In(x),
                                        n.graph().Out(&y),
                                        mode,
                                        static_cast<DML_TENSOR_DATA_TYPE>(x.type),
                                        value,
                                        static_cast<UINT>(starts.size()),
                                        starts.data(),
                                        ends.data()};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_PADDING1, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status DepthToSpace(Lowering& n) {
  const bool to_space = n.proto().type == "DepthToSpace";
  const int64_t block = n.Int("blocksize", 0);
  if (n.rank(0) != 4 || block <= 0 || block > 4096)
    return InvalidArgument("blocksize ", block, " of a tensor of rank ", n.rank(0));
  Shape shape = n.shape(0);
  if (to_space ? shape[1] % (block * block) != 0 : shape[2] % block != 0 || shape[3] % block != 0) {
    return InvalidArgument(ShapeToString(shape), " is no multiple of blocksize ", block);
  }
  shape[1] = to_space ? shape[1] / (block * block) : shape[1] * block * block;
  for (const size_t i : {2, 3}) shape[i] = to_space ? shape[i] * block : shape[i] / block;
  std::string order = "DCR";
  if (to_space) ANYDML_RETURN_IF_ERROR(n.OneOf("mode", {"DCR", "CRD"}, &order));
  const View x = n.In(0);
  View y = n.New(x.type, shape);
  const DML_DEPTH_TO_SPACE1_OPERATOR_DESC desc{
      n.graph().In(x), n.graph().Out(&y), static_cast<UINT>(block),
      order == "CRD" ? DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH : DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW};
  ANYDML_RETURN_IF_ERROR(
      n.graph().Add(to_space ? DML_OPERATOR_DEPTH_TO_SPACE1 : DML_OPERATOR_SPACE_TO_DEPTH1, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

constexpr OperatorRow kMoveRows[] = {
    {kOnnx, "Transpose", 1, 1, 0, Transpose, host::Transpose},
    {kOnnx, "Expand", 2, 2, 2, Expand, host::Expand},
    {kOnnx, "Concat", 1, 255, 0, Concat, host::Concat},
    {kOnnx, "Split", 1, 2, 2, Split, host::Split},
    {kOnnx, "Slice", 1, 5, 0b11110, Slice, host::Slice},
    {kOnnx, "Tile", 2, 2, 2, Tile, host::Tile},
    {kOnnx, "Pad", 1, 4, 0b1110, Pad, nullptr},
    {kOnnx, "DepthToSpace", 1, 1, 0, DepthToSpace, nullptr},
    {kOnnx, "SpaceToDepth", 1, 1, 0, DepthToSpace, nullptr},
};

}  // namespace

std::span<const OperatorRow> MoveOperators() { return kMoveRows; }

}  // namespace anydml::onnx
