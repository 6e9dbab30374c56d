// Operators with indices. The tensors of one operator have equal rank, with leading 1s.
#include <algorithm>

#include "onnx/host/host.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

Status Gather(Lowering& n) {
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", 0), n.rank(0), &axis));
  const Shape &x_shape = n.shape(0), &i_shape = n.shape(1);
  Shape shape(x_shape.begin(), x_shape.begin() + axis);
  shape.insert(shape.end(), i_shape.begin(), i_shape.end());
  shape.insert(shape.end(), x_shape.begin() + axis + 1, x_shape.end());
  const size_t rank = std::max({size_t{1}, x_shape.size(), i_shape.size(), shape.size()});
  const View x = AtLeast(n.In(0), rank), indices = AtLeast(n.In(1), rank);
  View y = AtLeast(n.New(x.type, shape), rank);
  const DML_GATHER_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(indices), n.graph().Out(&y),
                                      static_cast<UINT>(axis + rank - x_shape.size()),
                                      static_cast<UINT>(i_shape.size())};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GATHER, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status GatherElements(Lowering& n) {
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", 0), n.rank(0), &axis));
  if (n.rank(1) != n.rank(0))
    return InvalidArgument("indices ", ShapeToString(n.shape(1)), " for data ", ShapeToString(n.shape(0)),
                           "; the same rank is allowed");
  View x = n.In(0);
  const View indices = n.In(1);
  // If there are fewer indices than elements along other axes, only the first elements are used.
  for (uint32_t i = 0; i < n.rank(0); ++i) {
    if (i != axis && n.shape(1)[i] > 0 && n.shape(1)[i] < n.shape(0)[i])
      ANYDML_RETURN_IF_ERROR(Part(n, x, i, 0, n.shape(1)[i], &x));
  }
  View y = n.New(x.type, n.shape(1));
  const DML_GATHER_ELEMENTS_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(indices), n.graph().Out(&y),
                                               axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GATHER_ELEMENTS, desc));
  n.Return(0, y, n.type(0), n.shape(1));
  return {};
}

Status GatherNd(Lowering& n) {
  const Shape &x_shape = n.shape(0), &i_shape = n.shape(1);
  const int64_t batch = n.Int("batch_dims", 0);
  const auto limit = static_cast<int64_t>(std::min(x_shape.size(), i_shape.size()));
  if (batch < 0 || batch >= limit || i_shape.back() < 1 ||
      i_shape.back() + batch > static_cast<int64_t>(x_shape.size())) {
    return InvalidArgument("indices ", ShapeToString(i_shape), " with batch_dims ", batch, " for data ",
                           ShapeToString(x_shape));
  }
  Shape shape(i_shape.begin(), i_shape.end() - 1);
  shape.insert(shape.end(), x_shape.begin() + batch + i_shape.back(), x_shape.end());
  const size_t rank = std::max({size_t{1}, x_shape.size(), i_shape.size(), shape.size()});
  const View x = AtLeast(n.In(0), rank), indices = AtLeast(n.In(1), rank);
  View y = AtLeast(n.New(x.type, shape), rank);
  const DML_GATHER_ND1_OPERATOR_DESC desc{n.graph().In(x),
                                          n.graph().In(indices),
                                          n.graph().Out(&y),
                                          static_cast<UINT>(x_shape.size()),
                                          static_cast<UINT>(i_shape.size()),
                                          static_cast<UINT>(batch)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GATHER_ND1, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status ScatterElements(Lowering& n) {
  if (n.Text("reduction", "none") != "none")
    return Unsupported("reduction ", n.Text("reduction", "").substr(0, 20));
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", 0), n.rank(0), &axis));
  if (ElementCount(n.shape(1)) == 0) {
    n.Forward(0, 0, n.shape(0));
    return {};
  }
  const View x = n.In(0), indices = n.In(1), updates = n.In(2);
  View y = n.New(x.type, n.shape(0));
  const DML_SCATTER_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(indices), n.graph().In(updates),
                                       n.graph().Out(&y), axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_SCATTER_ELEMENTS, desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status ScatterNd(Lowering& n) {
  if (n.Text("reduction", "none") != "none")
    return Unsupported("reduction ", n.Text("reduction", "").substr(0, 20));
  if (ElementCount(n.shape(1)) == 0) {
    n.Forward(0, 0, n.shape(0));
    return {};
  }
  const size_t rank = std::max({size_t{1}, n.rank(0), n.rank(1), n.rank(2)});
  const View x = AtLeast(n.In(0), rank), indices = AtLeast(n.In(1), rank), updates = AtLeast(n.In(2), rank);
  View y = AtLeast(n.New(x.type, n.shape(0)), rank);
  const DML_SCATTER_ND_OPERATOR_DESC desc{
      n.graph().In(x),   n.graph().In(indices),        n.graph().In(updates),
      n.graph().Out(&y), static_cast<UINT>(n.rank(0)), static_cast<UINT>(n.rank(1))};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_SCATTER_ND, desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status OneHot(Lowering& n) {
  const std::vector<double> depth = n.HostDoubles(1);
  if (depth.size() != 1 || !(depth[0] >= 0) || depth[0] > UINT32_MAX)
    return InvalidArgument("depth is no size");
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", -1), n.rank(0) + 1, &axis));
  Shape one = n.shape(0);
  one.insert(one.begin() + axis, 1);
  Shape shape = one;
  shape[axis] = static_cast<int64_t>(depth[0]);
  const DataType type = n.dml_type(0);
  const bool index = type == DataType::kInt32 || type == DataType::kInt64 || type == DataType::kUInt32 ||
                     type == DataType::kUInt64;
  View indices;
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(0), index ? type : DataType::kInt64, &indices));
  indices = Reshaped(indices, one);
  const View values = AtLeast(n.In(2), one.size());
  View y = n.New(values.type, shape);
  const DML_ONE_HOT_OPERATOR_DESC desc{n.graph().In(indices), n.graph().In(values), n.graph().Out(&y), axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ONE_HOT, desc));
  n.Return(0, y, n.type(2), shape);
  return {};
}

// Lengths vary along batch_axis.
Status ReverseSequence(Lowering& n) {
  uint32_t time = 0, batch = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("time_axis", 0), n.rank(0), &time));
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("batch_axis", 1), n.rank(0), &batch));
  if (time == batch) return InvalidArgument("time_axis and batch_axis are both ", time, "; they must differ");
  ANYDML_RETURN_IF_ERROR(CheckShape(n, 1, "sequence_lens", {n.shape(0)[batch]}));
  View lengths = n.In(1);
  lengths.type = DataType::kUInt64;
  Shape shape = n.shape(0);
  shape[time] = 1;
  lengths = Broadcast(AlongAxis(lengths, n.rank(0), batch), shape);
  const View x = n.In(0);
  View y = n.New(x.type, n.shape(0));
  const DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(lengths), n.graph().Out(&y),
                                                    time};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_REVERSE_SUBSEQUENCES, desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

constexpr OperatorRow kIndexRows[] = {
    {kOnnx, "Gather", 2, 2, 0, Gather, host::Gather},
    {kOnnx, "GatherElements", 2, 2, 0, GatherElements, nullptr},
    {kOnnx, "GatherND", 2, 2, 0, GatherNd, nullptr},
    {kOnnx, "Scatter", 3, 3, 0, ScatterElements, host::ScatterElements},
    {kOnnx, "ScatterElements", 3, 3, 0, ScatterElements, host::ScatterElements},
    {kOnnx, "ScatterND", 3, 3, 0, ScatterNd, host::ScatterNd},
    {kOnnx, "OneHot", 3, 3, 2, OneHot, nullptr},
    {kOnnx, "ReverseSequence", 2, 2, 0, ReverseSequence, nullptr},
    HostRow("NonZero", 1, 1, host::NonZero),
};

}  // namespace

std::span<const OperatorRow> IndexOperators() { return kIndexRows; }

}  // namespace anydml::onnx
