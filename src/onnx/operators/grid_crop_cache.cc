// Operators that write tensors into others: caches, frames, grids.
#include <algorithm>

#include "onnx/lower/attention_parts.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// Crops or pads around the centre.
Status CenterCropPad(Lowering& n) {
  const std::vector<int64_t> wanted = n.HostInts(1);
  std::vector<int64_t> axes = n.Ints("axes");
  if (!n.HasAttribute("axes")) {
    for (size_t i = 0; i < n.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  std::vector<uint32_t> sorted;
  ANYDML_RETURN_IF_ERROR(ResolveAxes(axes, n.rank(0), &sorted));
  if (axes.size() != wanted.size() || n.rank(0) == 0)
    return InvalidArgument("shape has ", wanted.size(), " elements; ", axes.size(), " are needed");
  View x = n.In(0);
  Shape shape = n.shape(0);
  std::vector<UINT> begin(shape.size(), 0), end(shape.size(), 0);
  bool pads = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    uint32_t axis = 0;
    ANYDML_RETURN_IF_ERROR(ResolveAxis(axes[i], n.rank(0), &axis));
    const int64_t size = shape[axis], target = wanted[i];
    if (target < 0 || target > INT32_MAX) return InvalidArgument("a size of ", target);
    if (target < size) ANYDML_RETURN_IF_ERROR(Part(n, x, axis, (size - target) / 2, target, &x));
    if (target > size) {
      begin[axis] = static_cast<UINT>((target - size) / 2);
      end[axis] = static_cast<UINT>(target - size) - begin[axis];
      pads = true;
    }
    shape[axis] = target;
  }
  if (pads) {
    const View inner = x;
    x = n.New(inner.type, shape);
    const DML_PADDING1_OPERATOR_DESC desc{n.graph().In(inner),
                                          n.graph().Out(&x),
                                          DML_PADDING_MODE_CONSTANT,
                                          static_cast<DML_TENSOR_DATA_TYPE>(inner.type),
                                          DML_SCALAR_UNION{},
                                          static_cast<UINT>(begin.size()),
                                          begin.data(),
                                          end.data()};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_PADDING1, desc));
  }
  if (shape == n.shape(0))
    n.Forward(0, 0, shape);
  else
    n.Return(0, x, n.type(0), shape);
  return {};
}

// past_cache, update, write_indices {batch}: the update from there on, possibly wrapping at the end.
Status TensorScatter(Lowering& n) {
  const Shape &cache = n.shape(0), &update = n.shape(1);
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", -2), cache.size(), &axis));
  Shape same = update;
  if (same.size() == cache.size()) same[axis] = cache[axis];
  if (axis == 0 || same != cache || update[axis] > cache[axis] || cache[axis] > INT32_MAX / 2)
    return InvalidArgument("an update ", ShapeToString(update), " of ", ShapeToString(cache));
  const std::string mode = n.Text("mode", "linear");
  if (mode != "linear" && mode != "circular") return Unsupported("mode ", mode.substr(0, 20));
  Shape one(cache.size(), 1), at_shape = one, along = one;
  one[0] = at_shape[0] = cache[0];
  at_shape[axis] = along[axis] = cache[axis];
  View first, rows, at, inside, behind;
  if (n.Has(2)) {
    if (n.shape(2) != Shape{cache[0]}) return InvalidArgument("write_indices ", ShapeToString(n.shape(2)));
    ANYDML_RETURN_IF_ERROR(Cast(n, n.In(2), DataType::kInt32, &first));
  } else {
    ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {cache[0]}, 0, &first));
  }
  const auto number = [&](int64_t value, View* view) {
    ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {1}, static_cast<double>(value), view));
    *view = Broadcast(*view, at_shape);
    return Status();
  };
  View zero, size, count;
  ANYDML_RETURN_IF_ERROR(number(0, &zero));
  ANYDML_RETURN_IF_ERROR(number(cache[axis], &size));
  ANYDML_RETURN_IF_ERROR(number(update[axis], &count));
  ANYDML_RETURN_IF_ERROR(Count(n, cache[axis], &rows));
  rows = Broadcast(Reshaped(rows, along), at_shape);
  ANYDML_RETURN_IF_ERROR(
      Binary(n, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, rows, Broadcast(Reshaped(first, one), at_shape), &at));
  if (mode == "circular")
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MODULUS_FLOOR, at, size, &at));
  ANYDML_RETURN_IF_ERROR(
      Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL, at, zero, &inside));
  ANYDML_RETURN_IF_ERROR(Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN, at, count, &behind));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_AND, inside, behind, &inside));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, at, size, &at));
  ANYDML_RETURN_IF_ERROR(If(n, inside, at, rows, &at));
  const View parts[] = {n.In(0), n.In(1)};
  View all, y = n.New(n.dml_type(0), cache);
  ANYDML_RETURN_IF_ERROR(Join(n, parts, axis, &all));
  const View indices = Broadcast(at, cache);
  const DML_GATHER_ELEMENTS_OPERATOR_DESC desc{n.graph().In(all), n.graph().In(indices), n.graph().Out(&y),
                                               axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GATHER_ELEMENTS, desc));
  n.Return(0, y, n.type(0), cache);
  return {};
}

// theta {N, 2, 3} or {N, 3, 4}, size {N, C, (D,) H, W}: the transformed positions of an image's elements.
Status AffineGrid(Lowering& n) {
  const Shape size = n.HostInts(1);
  if (!IsFloat(n.type(0))) return Unsupported("of ", Name(n.type(0)));
  const size_t dimensions = size.size() < 2 ? 0 : size.size() - 2;
  if ((dimensions != 2 && dimensions != 3) ||
      n.shape(0) != Shape{size[0], static_cast<int64_t>(dimensions), static_cast<int64_t>(dimensions) + 1})
    return InvalidArgument("theta ", ShapeToString(n.shape(0)), " for ", ShapeToString(size));
  const std::span<const int64_t> spatial = std::span(size).subspan(2);
  const std::optional<int64_t> places = ElementCount(spatial);
  if (!places || *places > (int64_t{1} << 24)) return Unsupported("a grid of ", ShapeToString(size));
  const bool align = n.Int("align_corners", 0) != 0;
  std::vector<double> base;
  std::vector<int64_t> at(dimensions, 0);
  for (int64_t i = 0; i < *places; ++i) {
    for (size_t d = dimensions; d-- > 0;) {  // x first
      const auto length = static_cast<double>(spatial[d]), x = static_cast<double>(at[d]);
      base.push_back(!align ? (2 * x + 1) / length - 1 : length > 1 ? 2 * x / (length - 1) - 1 : -1);
    }
    base.push_back(1);
    for (size_t d = dimensions; d-- > 0 && ++at[d] == spatial[d];) at[d] = 0;
  }
  const auto width = static_cast<int64_t>(dimensions);
  const View a = Broadcast(n.Constant(FromDoubles(n.type(0), {*places, width + 1}, base)),
                           Shape{size[0], *places, width + 1});
  const View b = n.In(0);
  View y = n.New(b.type, Shape{size[0], *places, width});
  const DML_GEMM_OPERATOR_DESC desc{n.graph().In(a),
                                    n.graph().In(b),
                                    n.graph().In(nullptr),
                                    n.graph().Out(&y),
                                    DML_MATRIX_TRANSFORM_NONE,
                                    DML_MATRIX_TRANSFORM_TRANSPOSE,
                                    1,
                                    0,
                                    nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GEMM, desc));
  Shape shape = {size[0]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(width);
  n.Return(0, y, n.type(0), shape);
  return {};
}

constexpr OperatorRow kGridCropCacheRows[] = {
    {kOnnx, "AffineGrid", 2, 2, 2, AffineGrid, nullptr},
    {kOnnx, "CenterCropPad", 2, 2, 2, CenterCropPad, nullptr},
    {kOnnx, "TensorScatter", 2, 3, 0, TensorScatter, nullptr},
};

}  // namespace

std::span<const OperatorRow> GridCropCacheOperators() { return kGridCropCacheRows; }

}  // namespace anydml::onnx
