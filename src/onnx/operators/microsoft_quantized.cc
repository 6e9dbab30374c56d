// com.microsoft's operators on quantised tensors: by DirectML's operators, or through floating-point numbers.
#include <initializer_list>

#include "onnx/lower/compose.h"
#include "onnx/lower/weight_zero_point.h"
#include "onnx/lower/windows.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// Inputs that are required although optional ones precede them.
Status NeedAll(const Lowering& n, std::initializer_list<size_t> inputs) {
  for (const size_t i : inputs) {
    if (!n.Has(i)) return InvalidArgument("input ", i, " is left out");
  }
  return {};
}

// Checks for a single scale and zero point, the inputs from `scale` on.
Status OneFor(const Lowering& n, size_t scale) {
  for (const size_t i : {scale, scale + 1}) {
    if (n.Has(i) && ElementCount(n.shape(i)) != 1) return Unsupported("scales along an axis");
  }
  return {};
}

Status Dequantize(Lowering& n, const View& x, size_t scale, View* y) {
  ANYDML_RETURN_IF_ERROR(OneFor(n, scale));
  const Shape shape = ShapeOf(x), one(x.rank(), 1);
  const View factor = Broadcast(Reshaped(n.In(scale), one), shape);
  View zero;
  if (n.Has(scale + 1)) zero = Broadcast(Reshaped(n.In(scale + 1), one), shape);
  View result = n.New(factor.type, shape);  // `y` may be `x`
  const DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC desc{
      n.graph().In(x), n.graph().In(factor), n.graph().In(n.Has(scale + 1) ? &zero : nullptr),
      n.graph().Out(&result)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR, desc));
  *y = result;
  return {};
}

Status Quantize(Lowering& n, const View& x, size_t scale, DataType type, View* y) {
  ANYDML_RETURN_IF_ERROR(OneFor(n, scale));
  const Shape shape = ShapeOf(x), one(x.rank(), 1);
  const View factor = Broadcast(Reshaped(n.In(scale), one), shape);
  View zero;
  if (n.Has(scale + 1)) zero = Broadcast(Reshaped(n.In(scale + 1), one), shape);
  View result = n.New(type, shape);
  const DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(factor),
                                                            n.graph().In(n.Has(scale + 1) ? &zero : nullptr),
                                                            n.graph().Out(&result)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_QUANTIZE_LINEAR, desc));
  *y = result;
  return {};
}

// A, A_scale, A_zero, B, B_scale, B_zero, C_scale, C_zero
Status QLinearAdd(Lowering& n) {
  ANYDML_RETURN_IF_ERROR(NeedAll(n, {1, 3, 4, 6}));
  Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(0), n.shape(3), &shape));
  const Shape full = shape.empty() ? Shape{1} : shape;
  const Shape one(full.size(), 1);
  View views[8];
  for (size_t i = 0; i < 8; ++i) {
    if (!n.Has(i)) continue;
    if (i != 0 && i != 3 && ElementCount(n.shape(i)) != 1) return Unsupported("scales along an axis");
    views[i] = i == 0 || i == 3 ? Broadcast(n.In(i), full) : Reshaped(n.In(i), one);
  }
  const auto optional = [&](size_t i) { return n.graph().In(n.Has(i) ? &views[i] : nullptr); };
  View y = n.New(n.dml_type(0), full);
  const DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC desc{optional(0), optional(1), optional(2),
                                                                 optional(3), optional(4), optional(5),
                                                                 optional(6), optional(7), n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_QUANTIZED_LINEAR_ADD, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

// The same inputs.
Status QLinearMul(Lowering& n) {
  ANYDML_RETURN_IF_ERROR(NeedAll(n, {1, 3, 4, 6}));
  Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(0), n.shape(3), &shape));
  const Shape full = shape.empty() ? Shape{1} : shape;
  View a, b, y;
  ANYDML_RETURN_IF_ERROR(Dequantize(n, n.In(0), 1, &a));
  ANYDML_RETURN_IF_ERROR(Dequantize(n, n.In(3), 4, &b));
  ANYDML_RETURN_IF_ERROR(
      Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, Broadcast(a, full), Broadcast(b, full), &y));
  ANYDML_RETURN_IF_ERROR(Quantize(n, y, 6, n.dml_type(0), &y));
  n.Return(0, y, n.type(0), shape);
  return {};
}

// Y_scale, Y_zero_point, then a tensor, its scale and its zero point for each.
Status QLinearConcat(Lowering& n) {
  const size_t count = (n.inputs() - 2) / 3;
  if (n.inputs() < 5 || (n.inputs() - 2) % 3 != 0)
    return InvalidArgument("it has ", n.inputs(), " inputs; 2 and 3 for each tensor are allowed");
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", 1), n.rank(2), &axis));
  std::vector<View> parts(count);
  Shape shape = n.shape(2);
  shape[axis] = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = 2 + 3 * i;
    Shape other = n.shape(at);
    if (other.size() != shape.size()) return InvalidArgument("tensor ", i, " has rank ", other.size());
    if (other[axis] > INT32_MAX) return InvalidArgument("tensor ", i, " is ", ShapeToString(other));
    shape[axis] += other[axis];
    other[axis] = shape[axis];
    if (other != shape) return InvalidArgument("tensor ", i, " is ", ShapeToString(n.shape(at)));
    ANYDML_RETURN_IF_ERROR(Dequantize(n, n.In(at), at + 1, &parts[i]));
  }
  View y;
  ANYDML_RETURN_IF_ERROR(Join(n, parts, axis, &y));
  ANYDML_RETURN_IF_ERROR(Quantize(n, y, 0, n.dml_type(2), &y));
  n.Return(0, y, n.type(2), shape);
  return {};
}

// X, X_scale, X_zero_point, Y_scale, Y_zero_point
Status QLinearActivation(Lowering& n) {
  ANYDML_RETURN_IF_ERROR(NeedAll(n, {1, 3}));
  View y;
  ANYDML_RETURN_IF_ERROR(Dequantize(n, n.In(0), 1, &y));
  ANYDML_RETURN_IF_ERROR(
      Activate(n, static_cast<DML_OPERATOR_TYPE>(n.row().parameter), y, &y, n.Float("alpha", 0.01f)));
  ANYDML_RETURN_IF_ERROR(Quantize(n, y, 3, n.dml_type(0), &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

// QLinearAveragePool and QLinearGlobalAveragePool, with channels first or last.
Status QLinearAverage(Lowering& n) {
  ANYDML_RETURN_IF_ERROR(NeedAll(n, {1, 3}));
  ANYDML_RETURN_IF_ERROR(OneFor(n, 1));
  ANYDML_RETURN_IF_ERROR(OneFor(n, 3));
  const bool global = n.proto().type == "QLinearGlobalAveragePool", behind = n.Int("channels_last", 0) != 0;
  const size_t rank = n.rank(0);
  if (rank < 3 || rank > 5) return Unsupported("rank ", rank);
  std::vector<uint32_t> order = {0}, back = {0};  // to channels first, and back
  if (behind) order.push_back(static_cast<uint32_t>(rank - 1));
  for (uint32_t i = 1; i < rank; ++i) {
    if (!behind || i + 1 < rank) order.push_back(i);
    if (behind) back.push_back(i + 1 < rank ? i + 1 : 1);
  }
  View x = Permuted(n.In(0), order);
  const Shape front = ShapeOf(x);
  const std::span<const int64_t> spatial = std::span(front).subspan(2);
  Windows w;
  const std::vector<int64_t> kernel = global ? Shape(spatial.begin(), spatial.end()) : n.Ints("kernel_shape");
  if (kernel.size() != spatial.size())
    return InvalidArgument("kernel_shape has ", kernel.size(), " elements");
  ANYDML_RETURN_IF_ERROR(ResolveWindows(n, spatial, kernel, &w));
  Shape shape = {front[0], front[1]};
  shape.insert(shape.end(), w.output.begin(), w.output.end());
  View y;
  ANYDML_RETURN_IF_ERROR(Dequantize(n, x, 1, &x));
  if (rank == 3) x = WithHeight(x);
  y = n.New(x.type, shape);
  if (rank == 3) y = WithHeight(y);
  w = AtLeastTwo(std::move(w));
  const DML_AVERAGE_POOLING_OPERATOR_DESC desc{
      n.graph().In(x), n.graph().Out(&y), w.rank(),     w.strides.data(),
      w.kernel.data(), w.begin.data(),    w.end.data(), n.Int("count_include_pad", 0) != 0};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_AVERAGE_POOLING, desc));
  y = Reshaped(y, shape);
  if (behind) y = Permuted(y, back);
  ANYDML_RETURN_IF_ERROR(Quantize(n, y, 3, n.dml_type(0), &y));
  n.Return(0, y, n.type(0), ShapeOf(y));
  return {};
}

// A, a_scale, a_zero_point, B, b_scale, b_zero_point, C, y_scale, y_zero_point
Status QGemm(Lowering& n) {
  ANYDML_RETURN_IF_ERROR(NeedAll(n, {1, 3, 4}));
  ANYDML_RETURN_IF_ERROR(OneFor(n, 1));
  if (n.rank(0) != 2 || n.rank(3) != 2) return InvalidArgument("A and B are no matrices");
  const uint32_t swap[] = {1, 0};
  const View a = n.Int("transA", 0) != 0 ? Permuted(n.In(0), swap) : n.In(0);
  const View b = n.Int("transB", 0) != 0 ? Permuted(n.In(3), swap) : n.In(3);
  const Shape shape = {a.sizes[0], b.sizes[1]};
  for (const size_t i : {4, 5}) {
    const int64_t count = n.Has(i) ? ElementCount(n.shape(i)).value_or(0) : 1;
    if (count != 1 && count != shape[1]) return InvalidArgument("a scale ", ShapeToString(n.shape(i)));
  }
  if (a.sizes[1] != b.sizes[0]) return InvalidArgument("shapes that cannot be multiplied");
  View a_zero, b_zero, y = n.New(DataType::kInt32, shape);
  if (n.Has(2)) a_zero = AlongAxis(n.In(2), 2, 0);
  if (n.Has(5)) b_zero = AlongAxis(n.In(5), 2, 1);
  GraphBuilder& g = n.graph();
  const DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC desc{g.In(a), g.In(n.Has(2) ? &a_zero : nullptr), g.In(b),
                                                       g.In(n.Has(5) ? &b_zero : nullptr), g.Out(&y)};
  ANYDML_RETURN_IF_ERROR(g.Add(DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, desc));
  if (n.Has(6)) {
    Shape together;
    ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(6), shape, &together));
    if (together != shape) return InvalidArgument("C ", ShapeToString(n.shape(6)));
    ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_ADD, y, n.In(6), &y));
  }
  const View a_scale = AlongAxis(n.In(1), 2, 0), b_scale = AlongAxis(n.In(4), 2, 1);
  View scale;
  ANYDML_RETURN_IF_ERROR(Cast(n, y, a_scale.type, &y));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, b_scale, a_scale, &scale));
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, scale, &scale, n.Float("alpha", 1)));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, y, scale, &y));
  if (n.Has(7)) ANYDML_RETURN_IF_ERROR(Quantize(n, y, 7, n.dml_type(0), &y));
  n.Return(0, y, n.type(n.Has(7) ? 0 : 1), shape);
  return {};
}

// A, B, b_scale, b_zero_point, bias
Status DynamicQuantizeMatMul(Lowering& n) {
  const Shape &a = n.shape(0), &b = n.shape(1);
  if (a.empty() || b.size() != 2 || a.back() != b[0])
    return InvalidArgument("A ", ShapeToString(a), " and B ", ShapeToString(b));
  const int64_t rows = ElementCount(std::span(a).first(a.size() - 1)).value_or(0);
  const Shape product = {rows, b[1]}, one = {1, 1};
  for (const size_t i : {2, 3}) {
    const int64_t count = n.Has(i) ? ElementCount(n.shape(i)).value_or(0) : 1;
    if (count != 1 && count != b[1]) return InvalidArgument("b_scale ", ShapeToString(n.shape(i)));
  }
  const View x = Reshaped(n.In(0), Shape{rows, b[0]}), weights = n.In(1), b_scale = AlongAxis(n.In(2), 2, 1);
  View q = n.New(DataType::kUInt8, ShapeOf(x)), scale = n.New(DataType::kFloat32, one),
       zero = n.New(DataType::kUInt8, one), bias, y = n.New(x.type, product);
  const WeightZeroPoint b_zero(n, 1, 3, 2, 1, b[1]);
  GraphBuilder& g = n.graph();
  const DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC quantize{g.In(x), g.Out(&q), g.Out(&scale), g.Out(&zero)};
  ANYDML_RETURN_IF_ERROR(g.Add(DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR, quantize));
  if (n.Has(4) && n.shape(4) != Shape{b[1]}) return InvalidArgument("bias ", ShapeToString(n.shape(4)));
  if (n.Has(4)) bias = Broadcast(n.In(4), product);
  const DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC desc{g.In(q),
                                                                g.In(scale),
                                                                g.In(zero),
                                                                g.In(weights),
                                                                g.In(b_scale),
                                                                g.In(b_zero.use),
                                                                g.In(n.Has(4) ? &bias : nullptr),
                                                                g.Out(&y)};
  ANYDML_RETURN_IF_ERROR(g.Add(DML_OPERATOR_MATRIX_MULTIPLY_INTEGER_TO_FLOAT, desc));
  Shape shape = a;
  shape.back() = b[1];
  n.Return(0, y, n.type(0), shape);
  return {};
}

// One per block; with four bits every column begins with a new byte.
Status ZeroPoints(Lowering& n, int64_t columns, int64_t blocks, int64_t bits, View* out) {
  const int64_t bytes = bits == 4 ? (blocks + 1) / 2 : blocks;
  if (n.type(3) != ElementType::kUInt8 || ElementCount(n.shape(3)) != columns * bytes)
    return InvalidArgument("zero points ", ShapeToString(n.shape(3)));
  if (bits == 8 || blocks % 2 == 0) {
    View view = n.In(3);
    view.type = bits == 4 ? DataType::kUInt4 : DataType::kUInt8;
    *out = Reshaped(view, Shape{columns, blocks});
    return {};
  }
  const Tensor* const known = n.IfConstant(3);
  if (known == nullptr) return Unsupported("an odd number of zero points that are not constant");
  const std::vector<int64_t> pairs = ToInts(*known);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < columns * blocks; ++i) {
    const int64_t pair = pairs[static_cast<size_t>(i / blocks * bytes + i % blocks / 2)];
    values.push_back(i % blocks % 2 == 0 ? pair & 15 : pair >> 4);
  }
  *out = n.Constant(FromInts(ElementType::kUInt4, {columns, blocks}, values));
  return {};
}

// A, packed B {N, blocks, bytes}, scales {N, blocks}, zero points: products with weights of four or eight
// bits.
Status MatMulNBits(Lowering& n) {
  const int64_t k = n.Int("K", 0), columns = n.Int("N", 0), bits = n.Int("bits", 4),
                block = n.Int("block_size", 0);
  if ((bits != 4 && bits != 8) || block < 2 || block % 2 != 0 || block > (1 << 24) || k < 1 ||
      k > INT32_MAX - block || columns < 1 || columns > INT32_MAX)
    return Unsupported("bits ", bits, " with blocks of ", block, " of ", k);
  if (n.Has(4) || (n.Has(3) && IsFloat(n.type(3)))) return Unsupported("g_idx, or such zero points");
  if (n.Int("weight_prepacked", 0) != 0) return Unsupported("weight_prepacked");
  if (n.rank(0) == 0 || n.shape(0).back() != k)
    return InvalidArgument("A ", ShapeToString(n.shape(0)), " and K ", k);
  const int64_t blocks = (k + block - 1) / block, stored = blocks * block;  // the last one may be padded
  const DataType type = bits == 4 ? DataType::kUInt4 : DataType::kUInt8;
  if (ElementCount(n.shape(1)) != columns * stored / (8 / bits) || n.type(1) != ElementType::kUInt8 ||
      ElementCount(n.shape(2)) != columns * blocks)
    return InvalidArgument("B ", ShapeToString(n.shape(1)));
  View b = n.In(1), scale = Reshaped(n.In(2), Shape{columns, blocks}), zero;
  b.type = type;  // with four bits, two per byte
  b = Reshaped(b, Shape{columns, stored});
  if (n.Has(3)) ANYDML_RETURN_IF_ERROR(ZeroPoints(n, columns, blocks, bits, &zero));
  const View with_zero[] = {scale, zero};
  View weights = n.New(scale.type, Shape{columns, stored}), y;
  const DML_TENSOR_DESC* const input = n.graph().In(b);
  const UINT count = n.Has(3) ? 2 : 1;  // the default is the middle, as the model means it
  const DML_DEQUANTIZE_OPERATOR_DESC desc{
      input, n.Has(3) ? DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT : DML_QUANTIZATION_TYPE_SCALE, count,
      n.graph().InArray(std::span(with_zero).first(count)), n.graph().Out(&weights)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_DEQUANTIZE, desc));
  if (stored != k) ANYDML_RETURN_IF_ERROR(Part(n, weights, 1, 0, k, &weights));
  Shape shape = n.shape(0);
  const int64_t rows = ElementCount(std::span(shape).first(shape.size() - 1)).value_or(0);
  shape.back() = columns;
  const View a = Reshaped(n.In(0), Shape{rows, k});
  View bias;
  if (n.Has(5) && n.shape(5) != Shape{columns}) return InvalidArgument("bias ", ShapeToString(n.shape(5)));
  if (n.Has(5)) bias = Broadcast(n.In(5), Shape{rows, columns});
  y = n.New(a.type, Shape{rows, columns});
  const DML_GEMM_OPERATOR_DESC product{n.graph().In(a),
                                       n.graph().In(weights),
                                       n.graph().In(n.Has(5) ? &bias : nullptr),
                                       n.graph().Out(&y),
                                       DML_MATRIX_TRANSFORM_NONE,
                                       DML_MATRIX_TRANSFORM_TRANSPOSE,
                                       1,
                                       n.Has(5) ? 1.0f : 0.0f,
                                       nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GEMM, product));
  n.Return(0, y, n.type(0), shape);
  return {};
}

constexpr OperatorRow kQuantizedRows[] = {
    {kMicrosoft, "DynamicQuantizeMatMul", 3, 5, 0, DynamicQuantizeMatMul, nullptr},
    {kMicrosoft, "MatMulNBits", 3, 6, 0, MatMulNBits, nullptr},
    {kMicrosoft, "QGemm", 1, 9, 0, QGemm, nullptr},
    {kMicrosoft, "QLinearAdd", 1, 8, 0, QLinearAdd, nullptr},
    {kMicrosoft, "QLinearAveragePool", 1, 5, 0, QLinearAverage, nullptr},
    {kMicrosoft, "QLinearConcat", 5, 255, 0, QLinearConcat, nullptr},
    {kMicrosoft, "QLinearGlobalAveragePool", 1, 5, 0, QLinearAverage, nullptr},
    {kMicrosoft, "QLinearLeakyRelu", 1, 5, 0, QLinearActivation, nullptr, DML_OPERATOR_ACTIVATION_LEAKY_RELU},
    {kMicrosoft, "QLinearMul", 1, 8, 0, QLinearMul, nullptr},
    {kMicrosoft, "QLinearSigmoid", 1, 5, 0, QLinearActivation, nullptr, DML_OPERATOR_ACTIVATION_SIGMOID},
};

}  // namespace

std::span<const OperatorRow> MicrosoftQuantizedOperators() { return kQuantizedRows; }

}  // namespace anydml::onnx
