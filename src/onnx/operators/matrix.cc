// Products of matrices.
#include <algorithm>
#include <numeric>

#include "onnx/host/host.h"
#include "onnx/lower/compose.h"
#include "onnx/lower/weight_zero_point.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// The result of multiplying empty matrices is a constant, of at most this size.
constexpr uint64_t kMaxZeroBytes = uint64_t{4} << 20;

// The operands of a MatMul as matrices with equal batch dimensions, at most two of them.
struct Product {
  View a, b;
  Shape matrix;  // as the operator writes it
  Shape shape;   // as the model sees it
};

// Merges batch dimensions, copying broadcast ones.
Status MergeBatch(Lowering& n, View* view, const Shape& batch) {
  const Shape given = ShapeOf(*view);
  Shape full = batch;
  full.insert(full.end(), given.end() - 2, given.end());
  View packed;
  ANYDML_RETURN_IF_ERROR(Pack(n, Broadcast(*view, full), &packed));
  *view = Reshaped(packed, Shape{ElementCount(batch).value_or(0), given[given.size() - 2], given.back()});
  return {};
}

Status ResolveProduct(Lowering& n, size_t i, size_t j, Product* out) {
  Shape a = n.shape(i), b = n.shape(j);
  if (a.empty() || b.empty()) return InvalidArgument("a scalar cannot be multiplied as a matrix");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.back() != b[b.size() - 2]) {
    return InvalidArgument("shapes ", ShapeToString(n.shape(i)), " and ", ShapeToString(n.shape(j)),
                           " cannot be multiplied");
  }
  out->a = Reshaped(n.In(i), a);
  out->b = Reshaped(n.In(j), b);
  Shape batch;
  ANYDML_RETURN_IF_ERROR(BroadcastShape({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}, &batch));
  out->shape = batch;
  if (!row) out->shape.push_back(a[a.size() - 2]);
  if (!column) out->shape.push_back(b.back());

  if (b.size() == 2 && a.size() > 2) {  // one matrix for all: a product with more rows
    const int64_t rows = ElementCount(std::span(a).first(a.size() - 1)).value_or(0);
    out->a = Reshaped(out->a, Shape{rows, a.back()});
    out->matrix = {rows, b.back()};
    return {};
  }
  if (batch.size() > 2) {
    ANYDML_RETURN_IF_ERROR(MergeBatch(n, &out->a, batch));
    ANYDML_RETURN_IF_ERROR(MergeBatch(n, &out->b, batch));
    batch = {ElementCount(batch).value_or(0)};
  }
  Shape full_a = batch, full_b = batch;
  full_a.insert(full_a.end(), a.end() - 2, a.end());
  full_b.insert(full_b.end(), b.end() - 2, b.end());
  out->a = Broadcast(out->a, full_a);
  out->b = Broadcast(out->b, full_b);
  out->matrix = batch;
  out->matrix.push_back(a[a.size() - 2]);
  out->matrix.push_back(b.back());
  return {};
}

Status MatMul(Lowering& n) {
  Product p;
  ANYDML_RETURN_IF_ERROR(ResolveProduct(n, 0, 1, &p));
  if (p.a.empty() && p.b.empty()) {  // empty sums, if there are any
    const std::optional<uint64_t> bytes = PackedBytes(n.type(0), p.shape);
    if (!bytes || *bytes > kMaxZeroBytes) return Unsupported("a product of no elements of this size");
    std::byte* zeros = nullptr;
    n.Return(0, MakeTensor(n.type(0), p.shape, &zeros));
    return {};
  }
  View y = n.New(p.a.type, p.matrix);
  const DML_GEMM_OPERATOR_DESC desc{n.graph().In(p.a),
                                    n.graph().In(p.b),
                                    n.graph().In(nullptr),
                                    n.graph().Out(&y),
                                    DML_MATRIX_TRANSFORM_NONE,
                                    DML_MATRIX_TRANSFORM_NONE,
                                    1,
                                    0,
                                    nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GEMM, desc));
  n.Return(0, y, n.type(0), p.shape);
  return {};
}

Status Gemm(Lowering& n) {
  if (n.rank(0) != 2 || n.rank(1) != 2) return InvalidArgument("A and B are no matrices");
  const bool trans_a = n.Int("transA", 0) != 0, trans_b = n.Int("transB", 0) != 0;
  const View a = n.In(0), b = n.In(1);
  const Shape shape = {n.shape(0)[trans_a ? 1 : 0], n.shape(1)[trans_b ? 0 : 1]};
  if (n.shape(0)[trans_a ? 0 : 1] != n.shape(1)[trans_b ? 1 : 0]) {
    return InvalidArgument("shapes ", ShapeToString(n.shape(0)), " and ", ShapeToString(n.shape(1)),
                           " cannot be multiplied");
  }
  View c;
  if (n.Has(2)) {
    Shape together;
    ANYDML_RETURN_IF_ERROR(BroadcastShape(shape, n.shape(2), &together));
    if (together != shape)
      return InvalidArgument("C ", ShapeToString(n.shape(2)), " does not fit ", ShapeToString(shape));
    c = Broadcast(n.In(2), shape);
  }
  View y = n.New(a.type, shape);
  const float beta = n.Float("beta", 1);
  if (a.empty() && b.empty() && !y.empty()) {  // empty sums
    ANYDML_RETURN_IF_ERROR(n.Has(2) ? Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, c, &y, beta)
                                    : Fill(n, a.type, shape, 0, &y));
  } else {
    const DML_GEMM_OPERATOR_DESC desc{n.graph().In(a),
                                      n.graph().In(b),
                                      n.graph().In(n.Has(2) ? &c : nullptr),
                                      n.graph().Out(&y),
                                      trans_a ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                      trans_b ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                      n.Float("alpha", 1),
                                      beta,
                                      nullptr};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GEMM, desc));
  }
  if (n.proto().type == "FusedGemm") {
    const float numbers[] = {n.Float("activation_alpha", 0.01f), n.Float("activation_beta", 0)};
    ANYDML_RETURN_IF_ERROR(ActivateNamed(n, n.Text("activation", ""), numbers, y, &y));
  }
  n.Return(0, y, n.type(0), shape);
  return {};
}

// transA, transB, alpha. With transBatch, rows of matrices precede the batches.
Status FusedMatMul(Lowering& n) {
  Shape shapes[2], batches[2];
  View views[2];
  for (const size_t i : {0, 1}) {
    View& view = views[i];
    view = n.In(i);
    const size_t rank = n.rank(i);
    if (rank < 2) return Unsupported("rank ", rank);
    std::vector<uint32_t> order(rank);
    std::iota(order.begin(), order.end(), 0u);
    if (n.Int(i == 0 ? "transBatchA" : "transBatchB", 0) != 0)
      std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
    if (n.Int(i == 0 ? "transA" : "transB", 0) != 0) std::swap(order[rank - 1], order[rank - 2]);
    view = Permuted(view, order);
    shapes[i] = ShapeOf(view);
    batches[i].assign(shapes[i].begin(), shapes[i].end() - 2);
  }
  const int64_t rows = shapes[0][shapes[0].size() - 2], columns = shapes[1].back(), k = shapes[0].back();
  if (k != shapes[1][shapes[1].size() - 2])
    return InvalidArgument("shapes ", ShapeToString(n.shape(0)), " and ", ShapeToString(n.shape(1)),
                           " cannot be multiplied");
  Shape batch, shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(batches[0], batches[1], &batch));
  shape = batch;
  shape.insert(shape.end(), {rows, columns});
  if (batch.size() > 2) {
    ANYDML_RETURN_IF_ERROR(MergeBatch(n, &views[0], batch));
    ANYDML_RETURN_IF_ERROR(MergeBatch(n, &views[1], batch));
    batch = {ElementCount(batch).value_or(0)};
  }
  Shape full_a = batch, full_b = batch, matrix = batch;
  full_a.insert(full_a.end(), {rows, k});
  full_b.insert(full_b.end(), {k, columns});
  matrix.insert(matrix.end(), {rows, columns});
  const View a = Broadcast(views[0], full_a), b = Broadcast(views[1], full_b);
  View y = n.New(a.type, matrix);
  const DML_GEMM_OPERATOR_DESC desc{n.graph().In(a),
                                    n.graph().In(b),
                                    n.graph().In(nullptr),
                                    n.graph().Out(&y),
                                    DML_MATRIX_TRANSFORM_NONE,
                                    DML_MATRIX_TRANSFORM_NONE,
                                    n.Float("alpha", 1),
                                    0,
                                    nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GEMM, desc));
  if (n.proto().type == "FusedMatMulActivation") {
    const float numbers[] = {n.Float("activation_alpha", 0.01f), n.Float("activation_beta", 0)};
    ANYDML_RETURN_IF_ERROR(ActivateNamed(n, n.Text("activation", ""), numbers, y, &y));
  }
  n.Return(0, y, n.type(0), shape);
  return {};
}

// A scale or zero point for each row (column), or one for all, in the products' form.
struct Parameter {
  View view;
  const View* use = nullptr;

  Parameter(Lowering& n, size_t input, size_t rank, bool rows) {
    if (!n.Has(input)) return;
    view = AlongAxis(n.In(input), rank, rows ? rank - 2 : rank - 1);
    use = &view;
  }
};

Status MatMulInteger(Lowering& n) {
  Product p;
  ANYDML_RETURN_IF_ERROR(ResolveProduct(n, 0, 1, &p));
  const size_t rank = p.matrix.size();
  const Parameter a_zero(n, 2, rank, true);
  const WeightZeroPoint b_zero(n, 1, 3, rank, rank - 1, p.matrix.back());
  View y = n.New(DataType::kInt32, p.matrix);
  if (p.a.empty() && p.b.empty() && !y.empty()) {  // empty sums
    ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, p.matrix, 0, &y));
    n.Return(0, y, ElementType::kInt32, p.shape);
    return {};
  }
  const DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC desc{n.graph().In(p.a), n.graph().In(a_zero.use),
                                                       n.graph().In(p.b), n.graph().In(b_zero.use),
                                                       n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, desc));
  n.Return(0, y, ElementType::kInt32, p.shape);
  return {};
}

// a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point
Status QLinearMatMul(Lowering& n) {
  Product p;
  ANYDML_RETURN_IF_ERROR(ResolveProduct(n, 0, 3, &p));
  const size_t rank = p.matrix.size();
  Parameter a_scale(n, 1, rank, true), b_scale(n, 4, rank, false), y_scale(n, 6, rank, true);
  const Parameter a_zero(n, 2, rank, true), y_zero(n, 7, rank, true);
  for (Parameter* const scale : {&a_scale, &b_scale, &y_scale})  // some models have FLOAT16
    ANYDML_RETURN_IF_ERROR(Cast(n, scale->view, DataType::kFloat32, &scale->view));
  const WeightZeroPoint b_zero(n, 3, 5, rank, rank - 1, p.matrix.back());
  View y = n.New(n.dml_type(7), p.matrix);
  const DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC desc{
      n.graph().In(p.a),         n.graph().In(a_scale.use), n.graph().In(a_zero.use),
      n.graph().In(p.b),         n.graph().In(b_scale.use), n.graph().In(b_zero.use),
      n.graph().In(y_scale.use), n.graph().In(y_zero.use),  n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_QUANTIZED_LINEAR_MATRIX_MULTIPLY, desc));
  n.Return(0, y, n.type(7), p.shape);
  return {};
}

// A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias
Status MatMulIntegerToFloat(Lowering& n) {
  Product p;
  ANYDML_RETURN_IF_ERROR(ResolveProduct(n, 0, 1, &p));
  const size_t rank = p.matrix.size();
  const Parameter a_scale(n, 2, rank, true), b_scale(n, 3, rank, false), a_zero(n, 4, rank, true);
  const WeightZeroPoint b_zero(n, 1, 5, rank, rank - 1, p.matrix.back());
  View bias;
  if (n.Has(6)) {
    ANYDML_RETURN_IF_ERROR(CheckShape(n, 6, "bias", {p.matrix.back()}));
    bias = Broadcast(n.In(6), p.matrix);
  }
  View y = n.New(n.dml_type(2), p.matrix);
  const DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC desc{n.graph().In(p.a),
                                                                n.graph().In(a_scale.use),
                                                                n.graph().In(a_zero.use),
                                                                n.graph().In(p.b),
                                                                n.graph().In(b_scale.use),
                                                                n.graph().In(b_zero.use),
                                                                n.graph().In(n.Has(6) ? &bias : nullptr),
                                                                n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_MATRIX_MULTIPLY_INTEGER_TO_FLOAT, desc));
  n.Return(0, y, n.type(2), p.shape);
  return {};
}

constexpr OperatorRow kMatrixRows[] = {
    {kOnnx, "MatMul", 2, 2, 0, MatMul, host::MatMul},
    {kOnnx, "Gemm", 2, 3, 0, Gemm, host::Gemm},
    {kOnnx, "MatMulInteger", 2, 4, 0, MatMulInteger, nullptr},
    {kOnnx, "QLinearMatMul", 8, 8, 0, QLinearMatMul, nullptr},
    {kMicrosoft, "FusedGemm", 2, 3, 0, Gemm, nullptr},
    {kMicrosoft, "FusedMatMul", 2, 2, 0, FusedMatMul, nullptr},
    {kMicrosoft, "FusedMatMulActivation", 2, 2, 0, FusedMatMul, nullptr},
    {kMicrosoft, "TransposeMatMul", 2, 2, 0, FusedMatMul, nullptr},
    {kMicrosoft, "MatMulIntegerToFloat", 4, 7, 0, MatMulIntegerToFloat, nullptr},
};

}  // namespace

std::span<const OperatorRow> MatrixOperators() { return kMatrixRows; }

}  // namespace anydml::onnx
