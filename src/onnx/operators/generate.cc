// Tensors made from attributes and sizes only.
#include <cmath>

#include "onnx/host/host.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

Status ConstantOfShape(Lowering& n) {
  const Shape shape = n.HostInts(0);
  if (!ElementCount(shape)) return InvalidArgument("shape ", ShapeToString(shape), " is none");
  const Tensor* const given = n.TensorOf("value");
  const ElementType type = given != nullptr ? given->type : ElementType::kFloat;
  View y = n.New(DmlType(type), shape);
  const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC desc{
      n.graph().Out(&y), static_cast<DML_TENSOR_DATA_TYPE>(y.type),
      given != nullptr ? ScalarBits(*given, 0) : DML_SCALAR_UNION{}};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_FILL_VALUE_CONSTANT, desc));
  n.Return(0, y, type, shape);
  return {};
}

// start, limit, delta
Status Range(Lowering& n) {
  const std::vector<double> start = n.HostDoubles(0), limit = n.HostDoubles(1), delta = n.HostDoubles(2);
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1 || delta[0] == 0)
    return InvalidArgument("no range");
  const double count = std::ceil((limit[0] - start[0]) / delta[0]);
  if (!(count < 0x1p40)) return InvalidArgument("a range of ", count, " elements");
  const Shape shape = {count > 0 ? static_cast<int64_t>(count) : 0};
  View y = n.New(n.dml_type(0), shape);
  const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC desc{n.graph().Out(&y),
                                                   static_cast<DML_TENSOR_DATA_TYPE>(y.type),
                                                   ScalarBits(*n.Host(0), 0), ScalarBits(*n.Host(2), 0)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_FILL_VALUE_SEQUENCE, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status EyeLike(Lowering& n) {
  if (n.rank(0) != 2) return InvalidArgument("the input has rank ", n.rank(0));
  const auto type = static_cast<ElementType>(n.Int("dtype", static_cast<int64_t>(n.type(0))));
  const int64_t k = n.Int("k", 0);
  if (k > INT32_MAX || k < INT32_MIN) return InvalidArgument("k is ", k);
  View y = n.New(DmlType(type), n.shape(0));
  const DML_DIAGONAL_MATRIX_OPERATOR_DESC desc{n.graph().Out(&y), static_cast<INT>(k), 1};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_DIAGONAL_MATRIX, desc));
  n.Return(0, y, type, n.shape(0));
  return {};
}

// Zeroes the elements on the other side of diagonal k.
Status Trilu(Lowering& n) {
  if (n.rank(0) < 2) return InvalidArgument("the input has rank ", n.rank(0));
  const std::vector<int64_t> given = n.HostInts(1);
  const int64_t k =
      std::min<int64_t>(std::max<int64_t>(given.empty() ? 0 : given[0], INT32_MIN + 1), INT32_MAX - 1);
  const bool upper = n.Int("upper", 1) != 0;
  const Shape& full = n.shape(0);
  // Consecutive matrices, whatever the leading dimensions.
  const Shape shape = {ElementCount(std::span(full).first(full.size() - 2)).value_or(0),
                       full[full.size() - 2], full.back()};
  const View x = Reshaped(n.In(0), shape);
  View y = n.New(x.type, shape);
  const DML_DIAGONAL_MATRIX1_OPERATOR_DESC desc{n.graph().In(x),
                                                n.graph().Out(&y),
                                                static_cast<DML_TENSOR_DATA_TYPE>(x.type),
                                                DML_SCALAR_UNION{},
                                                upper ? INT32_MIN : static_cast<INT>(k + 1),
                                                upper ? static_cast<INT>(k) : INT32_MAX};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_DIAGONAL_MATRIX1, desc));
  n.Return(0, y, n.type(0), full);
  return {};
}

constexpr OperatorRow kGenerateRows[] = {
    {kOnnx, "ConstantOfShape", 1, 1, 1, ConstantOfShape, host::ConstantOfShape},
    {kOnnx, "Range", 3, 3, 7, Range, host::Range},
    {kOnnx, "EyeLike", 1, 1, 0, EyeLike, nullptr},
    {kOnnx, "Trilu", 1, 2, 2, Trilu, nullptr},
    {kMicrosoft, "Trilu", 1, 2, 2, Trilu, nullptr},
};

}  // namespace

std::span<const OperatorRow> GenerateOperators() { return kGenerateRows; }

}  // namespace anydml::onnx
