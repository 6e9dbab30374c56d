#include <algorithm>
#include <numeric>

#include "onnx/host/host.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

Shape Without(const Shape& shape, std::span<const uint32_t> axes, bool keep) {
  Shape result;
  for (uint32_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keep) result.push_back(1);
  }
  return result;
}

Status LowerReduce(Lowering& n) {
  // Axes became an input in version 18, of ReduceSum in 13.
  const bool as_input = n.version() >= (n.proto().type == "ReduceSum" ? 13 : 18);
  const std::vector<int64_t> given = as_input ? n.HostInts(1) : n.Ints("axes");
  if (given.empty() && n.Int("noop_with_empty_axes", 0) != 0) {
    // No axis is reduced, but logarithms, squares and the like are applied to every element.
    const uint32_t axis = 1;
    View y;
    ANYDML_RETURN_IF_ERROR(Reduce(n, static_cast<DML_REDUCE_FUNCTION>(n.row().parameter),
                                  Reshaped(n.In(0), Shape{ElementCount(n.shape(0)).value_or(0), 1}),
                                  {&axis, 1}, &y));
    n.Return(0, y, n.type(0), n.shape(0));
    return {};
  }
  std::vector<uint32_t> axes(std::max<size_t>(1, n.rank(0)));  // a scalar has one dimension here
  std::iota(axes.begin(), axes.end(), 0u);
  if (!given.empty()) ANYDML_RETURN_IF_ERROR(ResolveAxes(given, n.rank(0), &axes));
  View y;
  ANYDML_RETURN_IF_ERROR(Reduce(n, static_cast<DML_REDUCE_FUNCTION>(n.row().parameter), n.In(0), axes, &y));
  n.Return(0, y, n.type(0), Without(n.shape(0), axes, n.Int("keepdims", 1) != 0));
  return {};
}

Status ArgMax(Lowering& n) {
  uint32_t axis = 0;
  if (n.rank(0) > 0) ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", 0), n.rank(0), &axis));
  const View x = n.In(0);
  Shape shape = ShapeOf(x);
  shape[axis] = 1;
  View y = n.New(DataType::kInt64, shape);
  const DML_ARGMAX_OPERATOR_DESC desc{
      n.graph().In(x), n.graph().Out(&y), 1, &axis,
      n.Int("select_last_index", 0) != 0 ? DML_AXIS_DIRECTION_DECREASING : DML_AXIS_DIRECTION_INCREASING};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(static_cast<DML_OPERATOR_TYPE>(n.row().parameter), desc));
  n.Return(0, y, ElementType::kInt64, Without(n.shape(0), {&axis, 1}, n.Int("keepdims", 1) != 0));
  return {};
}

// CumSum, CumProd
Status Cumulate(Lowering& n) {
  const std::vector<int64_t> given = n.HostInts(1);
  uint32_t axis = 0;
  if (given.size() != 1) return InvalidArgument("axis has ", given.size(), " elements");
  ANYDML_RETURN_IF_ERROR(ResolveAxis(given[0], n.rank(0), &axis));
  const View x = n.In(0);
  View y = n.New(x.type, n.shape(0));
  const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc{
      n.graph().In(x), n.graph().Out(&y), axis,
      n.Int("reverse", 0) != 0 ? DML_AXIS_DIRECTION_DECREASING : DML_AXIS_DIRECTION_INCREASING,
      n.Int("exclusive", 0) != 0};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(static_cast<DML_OPERATOR_TYPE>(n.row().parameter), desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status TopK(Lowering& n) {
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", -1), n.rank(0), &axis));
  const std::vector<int64_t> given = n.version() < 10 ? std::vector<int64_t>{n.Int("k", 0)} : n.HostInts(1);
  if (given.size() != 1 || given[0] < 0 || given[0] > n.shape(0)[axis])
    return InvalidArgument("k is not in the axis' range");
  Shape shape = n.shape(0);
  shape[axis] = given[0];
  const View x = n.In(0);
  View values = n.New(x.type, shape), indices = n.New(DataType::kUInt64, shape);
  const DML_TOP_K1_OPERATOR_DESC desc{
      n.graph().In(x),
      n.graph().Out(&values),
      n.graph().Out(&indices),
      axis,
      static_cast<UINT>(given[0]),
      n.Int("largest", 1) != 0 ? DML_AXIS_DIRECTION_DECREASING : DML_AXIS_DIRECTION_INCREASING};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_TOP_K1, desc));
  n.Return(0, values, n.type(0), shape);
  n.Return(1, indices, ElementType::kInt64, shape);
  return {};
}

constexpr OperatorRow kReductionRows[] = {
    {kOnnx, "ReduceL1", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_L1},
    {kOnnx, "ReduceL2", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_L2},
    {kOnnx, "ReduceLogSum", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_LOG_SUM},
    {kOnnx, "ReduceLogSumExp", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_LOG_SUM_EXP},
    {kOnnx, "ReduceMax", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_MAX},
    {kOnnx, "ReduceMean", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_AVERAGE},
    {kOnnx, "ReduceMin", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_MIN},
    {kOnnx, "ReduceProd", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_MULTIPLY},
    {kOnnx, "ReduceSum", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_SUM},
    {kOnnx, "ReduceSumSquare", 1, 2, 2, LowerReduce, host::Reduce, DML_REDUCE_FUNCTION_SUM_SQUARE},
    {kOnnx, "ArgMax", 1, 1, 0, ArgMax, nullptr, DML_OPERATOR_ARGMAX},
    {kOnnx, "ArgMin", 1, 1, 0, ArgMax, nullptr, DML_OPERATOR_ARGMIN},
    {kOnnx, "CumSum", 2, 2, 2, Cumulate, host::CumSum, DML_OPERATOR_CUMULATIVE_SUMMATION},
    {kOnnx, "CumProd", 2, 2, 2, Cumulate, host::CumSum, DML_OPERATOR_CUMULATIVE_PRODUCT},
    {kOnnx, "TopK", 1, 2, 2, TopK, nullptr},
};

}  // namespace

std::span<const OperatorRow> ReductionOperators() { return kReductionRows; }

}  // namespace anydml::onnx
