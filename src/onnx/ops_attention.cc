// Attention and what belongs to it.
#include <cmath>

#include "onnx/compose.h"
#include "onnx/operators.h"

namespace anydml::onnx {
namespace {

struct Heads {
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  bool split = false;  // {batch, heads, length, size} and not {batch, length, heads * size}
};

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

// As {batch, heads, length, size}, whatever it is.
View SplitHeads(const View& view, const Heads& heads) {
  if (heads.split) return view;
  const uint32_t order[] = {0, 2, 1, 3};
  return Permuted(Reshaped(view, Shape{heads.batch, heads.length, heads.heads, heads.size}), order);
}

// The queries of the heads that share keys, one after the other: {batch, key heads, group * length, size}.
Status Group(Lowering& n, const View& queries, const Heads& q, const Heads& k, View* out) {
  if (q.heads == k.heads) {
    *out = queries;
    return {};
  }
  View packed;
  ANYDML_RETURN_IF_ERROR(Pack(n, queries, &packed));
  *out = Reshaped(packed, Shape{q.batch, k.heads, q.heads / k.heads * q.length, q.size});
  return {};
}

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

// What is added to the logits {batch, heads, length, keys}: a mask, and minus infinity above the diagonal.
Status Bias(Lowering& n, const Heads& q, int64_t keys, int64_t past, bool* has_bias, View* out) {
  const Shape shape = {q.batch, q.heads, q.length, keys};
  const DataType type = n.dml_type(0);
  *has_bias = false;
  if (n.Has(3)) {
    Shape together;
    ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(3), shape, &together));
    if (together != shape) return Unsupported("a mask ", ShapeToString(n.shape(3)));
    View mask = n.In(3);
    if (n.type(3) == ElementType::kBool) {
      View kept, lost, bias;
      ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, 0, &kept));
      ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, -HUGE_VAL, &lost));
      const Shape given = ShapeOf(mask);
      kept = Broadcast(kept, given);
      lost = Broadcast(lost, given);
      bias = n.New(type, given);
      const DML_ELEMENT_WISE_IF_OPERATOR_DESC desc{n.graph().In(mask), n.graph().In(kept), n.graph().In(lost),
                                                   n.graph().Out(&bias)};
      ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_IF, desc));
      mask = bias;
    }
    *out = Broadcast(mask, shape);
    *has_bias = true;
  }
  if (n.Int("is_causal", 0) == 0) return {};
  View triangle = n.New(type, Shape{q.length, keys});
  const DML_DIAGONAL_MATRIX1_OPERATOR_DESC desc{
      n.graph().In(nullptr),   n.graph().Out(&triangle),   static_cast<DML_TENSOR_DATA_TYPE>(type),
      Scalar(type, -HUGE_VAL), static_cast<INT>(past + 1), INT32_MAX};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_DIAGONAL_MATRIX1, desc));
  triangle = Broadcast(triangle, shape);
  if (*has_bias) {
    View sum;
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, triangle, *out, &sum));
    triangle = sum;
  }
  *out = triangle;
  *has_bias = true;
  return {};
}

// The past before what is new, along the keys; also what the model wants back as present.
Status WithPast(Lowering& n, size_t past, const View& now, const Heads& heads, size_t present, View* out) {
  *out = now;
  int64_t length = heads.length;
  if (n.Has(past)) {
    const View parts[] = {n.In(past), now};
    length += n.shape(past)[2];
    *out = n.New(now.type, Shape{heads.batch, heads.heads, length, heads.size});
    const DML_TENSOR_DESC* const inputs = n.graph().InArray(parts);
    const DML_JOIN_OPERATOR_DESC desc{2, inputs, n.graph().Out(out), 2};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_JOIN, desc));
  }
  if (!n.Wants(present)) return {};
  View packed;
  ANYDML_RETURN_IF_ERROR(Pack(n, *out, &packed));
  n.Return(present, packed, n.type(0), {heads.batch, heads.heads, length, heads.size});
  return {};
}

// Q, K, V, attn_mask, past_key, past_value
Status Attention(Lowering& n) {
  if (n.Float("softcap", 0) != 0) return Unsupported("softcap");
  if (n.Wants(3)) return Unsupported("qk_matmul_output");
  Heads q, k, v;
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(0), n.Int("q_num_heads", 0), &q));
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(1), n.Int("kv_num_heads", 0), &k));
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(2), n.Int("kv_num_heads", 0), &v));
  const bool has_past = n.Has(4) && n.Has(5);
  if (q.heads % k.heads != 0 || k.heads != v.heads || q.size != k.size || k.length != v.length ||
      q.batch != k.batch || (n.Has(4) != n.Has(5)) ||
      (has_past && (n.rank(4) != 4 || n.rank(5) != 4 || n.shape(4)[2] != n.shape(5)[2]))) {
    return InvalidArgument("Q ", ShapeToString(n.shape(0)), ", K ", ShapeToString(n.shape(1)), " and V ",
                           ShapeToString(n.shape(2)));
  }
  const int64_t past = has_past ? n.shape(4)[2] : 0;
  const int64_t keys = k.length + past;
  View queries, all_keys, all_values, bias, logits, weights, result;
  ANYDML_RETURN_IF_ERROR(WithPast(n, 4, SplitHeads(n.In(1), k), k, 1, &all_keys));
  ANYDML_RETURN_IF_ERROR(WithPast(n, 5, SplitHeads(n.In(2), v), v, 2, &all_values));
  ANYDML_RETURN_IF_ERROR(Group(n, SplitHeads(n.In(0), q), q, k, &queries));
  bool has_bias = false;
  ANYDML_RETURN_IF_ERROR(Bias(n, q, keys, past, &has_bias, &bias));
  if (has_bias && q.heads != k.heads) {
    View packed;
    ANYDML_RETURN_IF_ERROR(Pack(n, bias, &packed));
    bias = Reshaped(packed, Shape{q.batch, k.heads, q.heads / k.heads * q.length, keys});
  }
  const float scale = n.Float("scale", 1 / std::sqrt(static_cast<float>(q.size)));
  ANYDML_RETURN_IF_ERROR(Product(n, queries, all_keys, true, scale, has_bias ? &bias : nullptr, &logits));
  const uint32_t axis = 3;
  weights = n.New(logits.type, ShapeOf(logits));
  const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax{n.graph().In(logits), n.graph().Out(&weights), 1,
                                                      &axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ACTIVATION_SOFTMAX1, softmax));
  ANYDML_RETURN_IF_ERROR(Product(n, weights, all_values, false, 1, nullptr, &result));
  if (q.split) {
    n.Return(0, result, n.type(0), {q.batch, q.heads, q.length, v.size});
    return {};
  }
  const uint32_t order[] = {0, 2, 1, 3};
  View merged;
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY,
                               Permuted(Reshaped(result, Shape{q.batch, q.heads, q.length, v.size}), order),
                               &merged));
  n.Return(0, merged, n.type(0), {q.batch, q.length, q.heads * v.size});
  return {};
}

// query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value
Status MultiHeadAttention(Lowering& n) {
  const int64_t heads = n.Int("num_heads", 0);
  if (!n.Has(1) || !n.Has(2) || n.rank(0) != 3 || n.rank(1) != 3 || n.rank(2) != 3)
    return Unsupported("packed or split inputs");
  if (n.Has(4)) return Unsupported("key_padding_mask");
  if (n.Int("unidirectional", 0) != 0) return Unsupported("unidirectional");
  Heads q, k, v;
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(0), heads, &q));
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(1), heads, &k));
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(2), heads, &v));
  const int64_t past = n.Has(6) && n.rank(6) == 4 ? n.shape(6)[2] : 0;
  const int64_t keys = k.length + past;
  const View query = n.In(0), key = n.In(1), value = n.In(2);
  View bias, position, past_key, past_value;
  if (n.Has(3)) bias = n.In(3);
  if (n.Has(5)) position = Broadcast(n.In(5), Shape{q.batch, heads, q.length, keys});
  if (n.Has(6)) past_key = n.In(6);
  if (n.Has(7)) past_value = n.In(7);
  const Shape shape = {q.batch, q.length, heads * v.size};
  View y = n.New(query.type, shape), present_key = n.New(query.type, Shape{k.batch, heads, keys, k.size}),
       present_value = n.New(query.type, Shape{v.batch, heads, keys, v.size});
  GraphBuilder& g = n.graph();
  const DML_MULTIHEAD_ATTENTION_OPERATOR_DESC desc{
      g.In(query),
      g.In(key),
      g.In(value),
      g.In(nullptr),
      g.In(nullptr),
      g.In(nullptr),
      g.In(n.Has(3) ? &bias : nullptr),
      g.In(nullptr),
      g.In(n.Has(5) ? &position : nullptr),
      g.In(n.Has(6) ? &past_key : nullptr),
      g.In(n.Has(7) ? &past_value : nullptr),
      g.Out(&y),
      g.Out(n.Wants(1) ? &present_key : nullptr),
      g.Out(n.Wants(2) ? &present_value : nullptr),
      n.Float("scale", 1 / std::sqrt(static_cast<float>(q.size))),
      n.Float("mask_filter_value", -10000.0f),
      static_cast<UINT>(heads),
      DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE};
  ANYDML_RETURN_IF_ERROR(g.Add(DML_OPERATOR_MULTIHEAD_ATTENTION, desc));
  n.Return(0, y, n.type(0), shape);
  if (n.Wants(1)) n.Return(1, present_key, n.type(0), ShapeOf(present_key));
  if (n.Wants(2)) n.Return(2, present_value, n.type(0), ShapeOf(present_value));
  return {};
}

// A, packed B {N, blocks, bytes}, scales {N, blocks}, zero points: products with weights of four bits.
Status MatMulNBits(Lowering& n) {
  const int64_t k = n.Int("K", 0), columns = n.Int("N", 0), bits = n.Int("bits", 4),
                block = n.Int("block_size", 0);
  if (bits != 4 || block < 1 || k < 1 || k > INT32_MAX || columns < 1 || columns > INT32_MAX ||
      k % block != 0)
    return Unsupported("bits ", bits, " with blocks of ", block, " of ", k);
  if (n.Has(4) || (n.Has(3) && (IsFloat(n.type(3)) || k / block % 2 != 0)))
    return Unsupported("g_idx, or such zero points");
  if (n.rank(0) == 0 || n.shape(0).back() != k)
    return InvalidArgument("A ", ShapeToString(n.shape(0)), " and K ", k);
  const int64_t blocks = k / block;
  if (ElementCount(n.shape(1)) != columns * k / 2 || ElementCount(n.shape(2)) != columns * blocks)
    return InvalidArgument("B ", ShapeToString(n.shape(1)));
  View b = n.In(1), scale = Reshaped(n.In(2), Shape{columns, blocks}), zero;
  b.type = DataType::kUInt4;  // two of them in each byte
  b = Reshaped(b, Shape{columns, k});
  if (n.Has(3)) {
    zero = n.In(3);
    zero.type = DataType::kUInt4;
    zero = Reshaped(zero, Shape{columns, blocks});
  }
  const View with_zero[] = {scale, zero};
  View weights = n.New(scale.type, Shape{columns, k}), y;
  const DML_TENSOR_DESC* const input = n.graph().In(b);
  const UINT count = n.Has(3) ? 2 : 1;  // without: the middle, as the model means it
  const DML_DEQUANTIZE_OPERATOR_DESC desc{
      input, n.Has(3) ? DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT : DML_QUANTIZATION_TYPE_SCALE, count,
      n.graph().InArray(std::span(with_zero).first(count)), n.graph().Out(&weights)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_DEQUANTIZE, desc));
  Shape shape = n.shape(0);
  const int64_t rows = ElementCount(std::span(shape).first(shape.size() - 1)).value_or(0);
  shape.back() = columns;
  const View a = Reshaped(n.In(0), Shape{1, 1, rows, k});
  View bias;
  if (n.Has(5)) bias = Broadcast(n.In(5), Shape{1, 1, rows, columns});
  ANYDML_RETURN_IF_ERROR(Product(n, a, AtLeast(weights, 4), true, 1, n.Has(5) ? &bias : nullptr, &y));
  n.Return(0, y, n.type(0), shape);
  return {};
}

constexpr OperatorRow kRows[] = {
    {kOnnx, "Attention", 3, 6, 0, Attention, nullptr},
    {kMicrosoft, "MultiHeadAttention", 1, 8, 0, MultiHeadAttention, nullptr},
    {kMicrosoft, "MatMulNBits", 3, 6, 0, MatMulNBits, nullptr},
};

}  // namespace

std::span<const OperatorRow> AttentionOperators() { return kRows; }

}  // namespace anydml::onnx
