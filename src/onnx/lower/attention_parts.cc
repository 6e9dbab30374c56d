#include "onnx/lower/attention_parts.h"

#include <algorithm>

namespace anydml::onnx {
namespace {

constexpr uint32_t kSwapHeads[] = {0, 2, 1, 3};

Status Product(Lowering& n, const View& a, const View& b, bool transpose_b, float alpha, const View* c,
               View* y) {
  Shape shape = ShapeOf(a);
  shape[3] = b.sizes[transpose_b ? 2 : 3];
  *y = n.New(a.type, shape);
  const DML_GEMM_OPERATOR_DESC desc{n.graph().In(a),
                                    n.graph().In(b),
                                    n.graph().In(c),
                                    n.graph().Out(y),
                                    DML_MATRIX_TRANSFORM_NONE,
                                    transpose_b ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                    alpha,
                                    c != nullptr ? 1.0f : 0.0f,
                                    nullptr};
  return n.graph().Add(DML_OPERATOR_GEMM, desc);
}

// Puts the query heads that share keys one after the other: {batch, key heads, group * length, size}.
Status Group(Lowering& n, const View& view, int64_t heads, View* out) {
  if (view.sizes[1] == heads) {
    *out = view;
    return {};
  }
  View packed;
  ANYDML_RETURN_IF_ERROR(Pack(n, view, &packed));
  *out = Reshaped(packed,
                  Shape{view.sizes[0], heads, int64_t{view.sizes[1]} / heads * view.sizes[2], view.sizes[3]});
  return {};
}

}  // namespace

Status HeadsOf(const Shape& shape, int64_t heads, Heads* out) {
  if (shape.size() == 4 && shape[1] > 0) {
    *out = {shape[0], shape[1], shape[2], shape[3], true};
    return {};
  }
  if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0)
    return InvalidArgument(ShapeToString(shape), " for ", heads, " heads");
  *out = {shape[0], heads, shape[1], shape[2] / heads, false};
  return {};
}

View SplitHeads(const View& view, const Heads& heads) {
  if (heads.split) return view;
  return Permuted(Reshaped(view, Shape{heads.batch, heads.length, heads.heads, heads.size}), kSwapHeads);
}

Status MergeHeads(Lowering& n, const View& view, View* out) {
  const View swapped = Permuted(view, kSwapHeads);
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, swapped, out));
  *out =
      Reshaped(*out, Shape{swapped.sizes[0], swapped.sizes[1], int64_t{swapped.sizes[2]} * swapped.sizes[3]});
  return {};
}

Status Attend(Lowering& n, const AttentionInputs& in, AttentionResults* out) {
  const int64_t heads = in.keys.sizes[1];
  const Shape q = ShapeOf(in.queries), k = ShapeOf(in.keys), v = ShapeOf(in.values);
  if (heads == 0 || q[1] % heads != 0 || v[1] != heads || q[3] != k[3] || k[2] != v[2] || q[0] != k[0] ||
      q[0] != v[0]) {
    return InvalidArgument("queries ", ShapeToString(q), ", keys ", ShapeToString(k), " and values ",
                           ShapeToString(v));
  }
  const Shape shape = {q[0], q[1], q[2], k[2]};
  View queries, bias;
  ANYDML_RETURN_IF_ERROR(Group(n, in.queries, heads, &queries));
  if (in.bias) {
    Shape together;
    ANYDML_RETURN_IF_ERROR(BroadcastShape(ShapeOf(*in.bias), shape, &together));
    if (together != shape) return InvalidArgument("a mask ", ShapeToString(ShapeOf(*in.bias)));
    ANYDML_RETURN_IF_ERROR(Group(n, Broadcast(*in.bias, shape), heads, &bias));
  }
  // The usual case is one product with the bias as its C.
  const bool together = !in.separate && in.softcap == 0;
  ANYDML_RETURN_IF_ERROR(
      Product(n, queries, in.keys, true, in.scale, together && in.bias ? &bias : nullptr, &out->logits));
  out->capped = out->logits;
  if (in.softcap != 0) {
    View scaled, tanh;
    ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_TANH, out->logits, &tanh, 1 / in.softcap));
    ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, tanh, &out->capped, in.softcap));
  }
  out->biased = out->capped;
  if (in.bias && !together)
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, out->capped, bias, &out->biased));
  ANYDML_RETURN_IF_ERROR(Softmax(n, out->biased, 3, &out->weights));
  ANYDML_RETURN_IF_ERROR(Product(n, out->weights, in.values, false, 1, nullptr, &out->output));
  out->output = Reshaped(out->output, Shape{q[0], q[1], q[2], v[3]});
  return {};
}

Status WithPast(Lowering& n, const View& past, const View& now, View* out) {
  const Shape a = ShapeOf(past), b = ShapeOf(now);
  if (a.size() != 4 || a[0] != b[0] || a[1] != b[1] || a[3] != b[3])
    return InvalidArgument("a past of ", ShapeToString(a), " before ", ShapeToString(b));
  const View parts[] = {past, now};
  if (!past.empty()) return Join(n, parts, 2, out);
  *out = now;
  return {};
}

Status MaskBias(Lowering& n, const View& visible, DataType type, double filter, View* out) {
  View kept, lost;
  ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, 0, &kept));
  ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, filter, &lost));
  return If(n, visible, kept, lost, out);
}

Status BandBias(Lowering& n, DataType type, int64_t length, int64_t keys, int64_t begin, int64_t end,
                double filter, View* out) {
  *out = n.New(type, Shape{1, 1, length, keys});
  const auto diagonal = [](int64_t i) {
    return static_cast<INT>(std::clamp<int64_t>(i, INT32_MIN, INT32_MAX));
  };
  const DML_DIAGONAL_MATRIX1_OPERATOR_DESC desc{
      n.graph().In(nullptr), n.graph().Out(out), static_cast<DML_TENSOR_DATA_TYPE>(type),
      Scalar(type, filter),  diagonal(begin),    diagonal(end)};
  return n.graph().Add(DML_OPERATOR_DIAGONAL_MATRIX1, desc);
}

Status CausalBias(Lowering& n, DataType type, int64_t length, int64_t keys, int64_t past, double filter,
                  View* out) {
  return BandBias(n, type, length, keys, past + 1, INT32_MAX, filter, out);
}

Status AddBias(Lowering& n, const Shape& shape, const View& more, std::optional<View>* bias) {
  if (!*bias) {
    *bias = more;
    return {};
  }
  Shape together;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(ShapeOf(more), ShapeOf(**bias), &together));
  Shape limit;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(together, shape, &limit));
  if (limit != shape) return InvalidArgument("a mask ", ShapeToString(together));
  View sum;
  ANYDML_RETURN_IF_ERROR(
      Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, Broadcast(more, together), Broadcast(**bias, together), &sum));
  *bias = sum;
  return {};
}

Status Count(Lowering& n, int64_t count, View* out) {
  *out = n.New(DataType::kInt32, Shape{count});
  const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC desc{n.graph().Out(out), DML_TENSOR_DATA_TYPE_INT32,
                                                   Scalar(DataType::kInt32, 0), Scalar(DataType::kInt32, 1)};
  return n.graph().Add(DML_OPERATOR_FILL_VALUE_SEQUENCE, desc);
}

Status RowsAt(Lowering& n, const View& table, const View& positions, View* out) {
  if (table.rank() != 2 || positions.rank() != 2)
    return InvalidArgument("a table ", ShapeToString(ShapeOf(table)), " and positions ",
                           ShapeToString(ShapeOf(positions)));
  const View rows = AtLeast(table, 3), at = AtLeast(positions, 3);
  *out = n.New(table.type, Shape{positions.sizes[0], positions.sizes[1], table.sizes[1]});
  const DML_GATHER_OPERATOR_DESC desc{n.graph().In(rows), n.graph().In(at), n.graph().Out(out), 1, 2};
  return n.graph().Add(DML_OPERATOR_GATHER, desc);
}

Status Rotate(Lowering& n, const View& x, const Rotation& r, View* out) {
  const int64_t half = r.size / 2, size = x.sizes[3];
  const int64_t step = r.interleaved ? 2 : 1;
  View first, second, a, b, c, d;
  ANYDML_RETURN_IF_ERROR(Part(n, x, 3, 0, half, &first, step));
  ANYDML_RETURN_IF_ERROR(Part(n, x, 3, r.interleaved ? 1 : half, half, &second, step));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, first, r.cosines, &a));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, second, r.sines, &b));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, a, b, &a));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, first, r.sines, &c));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, second, r.cosines, &d));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, c, d, &b));
  Shape shape = ShapeOf(x);
  if (r.interleaved) {  // pairs are in a dimension of their own
    const View pairs[] = {TrailingOnes(a, 5), TrailingOnes(b, 5)};
    ANYDML_RETURN_IF_ERROR(Join(n, pairs, 4, &a));
    shape[3] = r.size;
    a = Reshaped(a, shape);
  }
  std::vector<View> parts = {a};
  if (!r.interleaved) parts.push_back(b);
  if (r.size < size) ANYDML_RETURN_IF_ERROR(Part(n, x, 3, r.size, size - r.size, &parts.emplace_back()));
  if (parts.size() == 1) {
    *out = parts[0];
    return {};
  }
  return Join(n, parts, 3, out);
}

}  // namespace anydml::onnx
