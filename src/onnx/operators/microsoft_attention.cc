// com.microsoft's operators of attention.
#include <cmath>

#include "onnx/lower/attention_parts.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// The keys that a one-dimensional mask leaves visible, {batch, 1, 1, keys}. The mask has, per element of the
// batch, their number; or their ends followed by their begins; or more, beginning with their number.
Status VisibleKeys(Lowering& n, View mask, const Shape& logits, View* out) {
  const int64_t batch = logits[0], keys = logits[3], given = mask.sizes[0];
  if (given != batch && given != 2 * batch && given != 3 * batch + 2) {
    return Unsupported("a mask of ", given, " for ", ShapeToString(logits), "; one dimension has ", batch,
                       ", ", 2 * batch, " or ", 3 * batch + 2);
  }
  const Shape shape = {batch, 1, 1, keys};
  View columns;
  ANYDML_RETURN_IF_ERROR(Count(n, keys, &columns));
  columns = Broadcast(Reshaped(columns, Shape{1, 1, 1, keys}), shape);
  ANYDML_RETURN_IF_ERROR(Cast(n, mask, DataType::kInt32, &mask));
  const auto compare = [&](DML_OPERATOR_TYPE type, int64_t first, View* y) {
    View bounds;
    ANYDML_RETURN_IF_ERROR(Part(n, mask, 0, first, batch, &bounds));
    return Compare(n, type, columns, Broadcast(Reshaped(bounds, Shape{batch, 1, 1, 1}), shape), y);
  };
  ANYDML_RETURN_IF_ERROR(compare(DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN, 0, out));
  if (given != 2 * batch) return {};
  View begun;
  ANYDML_RETURN_IF_ERROR(compare(DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL, batch, &begun));
  return Binary(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_AND, *out, begun, out);
}

// Masks of visible keys: one-dimensional, {batch, keys}, {batch, queries, keys}, or with heads.
Status PaddingBias(Lowering& n, size_t input, const Shape& logits, DataType type, double filter, View* out) {
  const Shape& given = n.shape(input);
  const int64_t keys = logits[3];
  View mask = n.In(input), visible;
  if (given.size() == 1) {
    ANYDML_RETURN_IF_ERROR(VisibleKeys(n, mask, logits, &visible));
    return MaskBias(n, visible, type, filter, out);
  }
  Shape shape = given;
  if (given.size() == 2) shape = {given[0], 1, 1, given[1]};
  if (given.size() == 3) shape = {given[0], 1, given[1], given[2]};
  if (shape.size() != 4 || shape[3] != keys || (shape[0] != logits[0] && shape[0] != 1) ||
      (shape[2] != 1 && shape[2] != logits[2]))
    return Unsupported("a mask ", ShapeToString(given), " for ", ShapeToString(logits));
  View zero;
  mask = Reshaped(mask, shape);
  ANYDML_RETURN_IF_ERROR(Fill(n, mask.type, {1}, 0, &zero));
  ANYDML_RETURN_IF_ERROR(
      Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS, mask, Broadcast(zero, shape), &visible));
  View kept, lost;  // inverted: 0 is hidden
  ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, 0, &kept));
  ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, filter, &lost));
  return If(n, visible, lost, kept, out);
}

// Shared by this file's operators once queries, keys and values are computed.
struct Masks {
  size_t padding = SIZE_MAX;  // inputs
  size_t bias = SIZE_MAX;
  bool causal = false;
  int64_t past = 0;
};

Status Finish(Lowering& n, const Masks& masks, AttentionInputs in, View* output) {
  const Shape logits = {in.queries.sizes[0], in.queries.sizes[1], in.queries.sizes[2], in.keys.sizes[2]};
  const double filter = n.Float("mask_filter_value", -10000.0f);
  View more;
  if (n.Has(masks.bias)) {
    if (n.rank(masks.bias) > 4) return InvalidArgument("a bias ", ShapeToString(n.shape(masks.bias)));
    in.bias = AtLeast(n.In(masks.bias), 4);
  }
  if (n.Has(masks.padding)) {
    ANYDML_RETURN_IF_ERROR(PaddingBias(n, masks.padding, logits, in.queries.type, filter, &more));
    ANYDML_RETURN_IF_ERROR(AddBias(n, logits, more, &in.bias));
  }
  if (masks.causal) {
    ANYDML_RETURN_IF_ERROR(
        CausalBias(n, in.queries.type, logits[2], logits[3], masks.past, -HUGE_VAL, &more));
    ANYDML_RETURN_IF_ERROR(AddBias(n, logits, more, &in.bias));
  }
  in.scale = n.Float("scale", 0);
  if (in.scale == 0) in.scale = 1 / std::sqrt(static_cast<float>(in.queries.sizes[3]));
  AttentionResults r;
  ANYDML_RETURN_IF_ERROR(Attend(n, in, &r));
  return MergeHeads(n, r.output, output);
}

// {batch, length, width} as heads, with its part of a bias.
Status HeadsWithBias(Lowering& n, const View& x, int64_t heads, const View* bias, int64_t offset, View* out) {
  Heads h;
  ANYDML_RETURN_IF_ERROR(HeadsOf(ShapeOf(x), heads, &h));
  View sum = x;
  if (bias != nullptr && !h.split) {
    View part;
    if (bias->rank() != 1 || offset + h.heads * h.size > bias->sizes[0])
      return InvalidArgument("a bias ", ShapeToString(ShapeOf(*bias)));
    ANYDML_RETURN_IF_ERROR(Part(n, *bias, 0, offset, h.heads * h.size, &part));
    ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_ADD, x, part, &sum));
  }
  *out = SplitHeads(sum, h);
  return {};
}

// Number `i` of `count` tensors in {batch, length, heads, count, size}.
Status Unpack(Lowering& n, const View& packed, int64_t i, int64_t count, View* out) {
  const Shape shape = ShapeOf(packed);
  if (shape.size() != 5 || shape[3] != count) return InvalidArgument("packed as ", ShapeToString(shape));
  ANYDML_RETURN_IF_ERROR(Part(n, packed, 3, i, 1, out));
  *out = Reshaped(*out, Shape{shape[0], shape[1], shape[2] * shape[4]});
  return {};
}

Status QueriesKeysValues(Lowering& n, int64_t heads, AttentionInputs* in) {
  View q = n.In(0), k, v, bias;
  if (n.rank(0) == 5) {
    const View packed = q;
    ANYDML_RETURN_IF_ERROR(Unpack(n, packed, 0, 3, &q));
    ANYDML_RETURN_IF_ERROR(Unpack(n, packed, 1, 3, &k));
    ANYDML_RETURN_IF_ERROR(Unpack(n, packed, 2, 3, &v));
  } else if (n.Has(1) && n.rank(1) == 5) {
    ANYDML_RETURN_IF_ERROR(Unpack(n, n.In(1), 0, 2, &k));
    ANYDML_RETURN_IF_ERROR(Unpack(n, n.In(1), 1, 2, &v));
  } else if (n.Has(1) && n.Has(2)) {
    k = n.In(1);
    v = n.In(2);
  } else {
    return InvalidArgument("there are no keys and values");
  }
  if (n.Has(3)) bias = n.In(3);
  const View* const use = n.Has(3) ? &bias : nullptr;
  ANYDML_RETURN_IF_ERROR(HeadsWithBias(n, q, heads, use, 0, &in->queries));
  const int64_t width = int64_t{in->queries.sizes[1]} * in->queries.sizes[3];
  ANYDML_RETURN_IF_ERROR(HeadsWithBias(n, k, heads, use, width, &in->keys));
  return HeadsWithBias(n, v, heads, use, 2 * width, &in->values);
}

// The plain case is a single DirectML operator.
Status PlainMultiHead(Lowering& n, int64_t heads) {
  Heads q, k, v;
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(0), heads, &q));
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(1), heads, &k));
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(2), heads, &v));
  const int64_t past = n.Has(6) && n.rank(6) == 4 ? n.shape(6)[2] : 0;
  const int64_t keys = k.length + past;
  const View query = n.In(0), key = n.In(1), value = n.In(2);
  View bias, position, past_key, past_value;
  if (n.Has(3)) bias = n.In(3);
  if (n.Has(5)) {
    const Shape logits = {q.batch, heads, q.length, keys};
    Shape together;
    ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(5), logits, &together));
    if (together != logits) return InvalidArgument("a bias ", ShapeToString(n.shape(5)));
    position = Broadcast(n.In(5), logits);
  }
  if (n.Has(6)) past_key = n.In(6);
  if (n.Has(7)) past_value = n.In(7);
  const Shape shape = {q.batch, q.length, heads * v.size};
  View y = n.New(query.type, shape), present_key = n.New(query.type, Shape{k.batch, heads, keys, k.size}),
       present_value = n.New(query.type, Shape{v.batch, heads, keys, v.size});
  GraphBuilder& g = n.graph();
  const float scale = n.Float("scale", 0);  // 0 means the default
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
      scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(q.size)),
      n.Float("mask_filter_value", -10000.0f),
      static_cast<UINT>(heads),
      DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE};
  ANYDML_RETURN_IF_ERROR(g.Add(DML_OPERATOR_MULTIHEAD_ATTENTION, desc));
  n.Return(0, y, n.type(0), shape);
  if (n.Wants(1)) n.Return(1, present_key, n.type(0), ShapeOf(present_key));
  if (n.Wants(2)) n.Return(2, present_value, n.type(0), ShapeOf(present_value));
  return {};
}

// query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value
Status MultiHeadAttention(Lowering& n) {
  if (n.Has(8) || n.Has(9)) return Unsupported("past_sequence_length and cache_indirection");
  const int64_t heads = n.Int("num_heads", 0);
  const bool plain = n.rank(0) == 3 && n.Has(1) && n.Has(2) && n.rank(1) == 3 && n.rank(2) == 3 &&
                     !n.Has(4) && n.Int("unidirectional", 0) == 0 && !n.Wants(3);
  const bool past = n.Has(6) && ElementCount(n.shape(6)) != 0;
  if (plain && n.Has(6) == n.Has(7) && n.Has(6) == past) return PlainMultiHead(n, heads);
  AttentionInputs in;
  ANYDML_RETURN_IF_ERROR(QueriesKeysValues(n, heads, &in));
  Masks masks{4, 5, n.Int("unidirectional", 0) != 0, 0};
  if (n.Has(6) != n.Has(7)) return InvalidArgument("past_key and past_value belong together");
  if (n.Has(6)) {
    ANYDML_RETURN_IF_ERROR(WithPast(n, n.In(6), in.keys, &in.keys));
    ANYDML_RETURN_IF_ERROR(WithPast(n, n.In(7), in.values, &in.values));
    masks.past = n.shape(6)[2];
  }
  for (const size_t i : {1, 2}) {
    if (!n.Wants(i)) continue;
    View packed;
    ANYDML_RETURN_IF_ERROR(Pack(n, i == 1 ? in.keys : in.values, &packed));
    n.Return(i, packed, n.type(0), ShapeOf(packed));
  }
  View y;
  ANYDML_RETURN_IF_ERROR(Finish(n, masks, in, &y));
  n.Return(0, y, n.type(0), ShapeOf(y));
  return {};
}

// Self-attention on a projection {batch, length, q + k + v} of these widths. past {2, batch, heads, length,
// size}, like present.
Status SelfAttention(Lowering& n, const View& projection, const int64_t (&widths)[3], int64_t heads,
                     size_t mask, size_t past, size_t bias, ElementType type) {
  View parts[3];
  int64_t offset = 0;
  for (size_t i = 0; i < 3; ++i) {
    ANYDML_RETURN_IF_ERROR(Part(n, projection, 2, offset, widths[i], &parts[i]));
    ANYDML_RETURN_IF_ERROR(HeadsWithBias(n, parts[i], heads, nullptr, 0, &parts[i]));
    offset += widths[i];
  }
  AttentionInputs in;
  in.queries = parts[0];
  in.keys = parts[1];
  in.values = parts[2];
  Masks masks{mask, bias, n.Int("unidirectional", 0) != 0, 0};
  if (n.Has(past)) {
    const Shape& given = n.shape(past);
    if (given.size() != 5 || given[0] != 2) return InvalidArgument("past ", ShapeToString(given));
    masks.past = given[3];
    const Shape one(given.begin() + 1, given.end());
    for (const int64_t i : {0, 1}) {
      View before;
      ANYDML_RETURN_IF_ERROR(Part(n, n.In(past), 0, i, 1, &before));
      View& now = i == 0 ? in.keys : in.values;
      ANYDML_RETURN_IF_ERROR(WithPast(n, Reshaped(before, one), now, &now));
    }
  }
  if (n.Wants(1)) {
    View both[2];
    for (const size_t i : {0, 1}) {
      ANYDML_RETURN_IF_ERROR(Pack(n, i == 0 ? in.keys : in.values, &both[i]));
      both[i] = AtLeast(both[i], 5);
    }
    View present;
    ANYDML_RETURN_IF_ERROR(Join(n, both, 0, &present));
    n.Return(1, present, type, ShapeOf(present));
  }
  View y;
  ANYDML_RETURN_IF_ERROR(Finish(n, masks, in, &y));
  n.Return(0, y, type, ShapeOf(y));
  return {};
}

// input {batch, length, width}, weights {width, q + k + v}, bias, mask_index, past, attention_bias
Status FusedAttention(Lowering& n) {
  if (n.Has(6)) return Unsupported("past_sequence_length");
  if (n.Int("do_rotary", 0) != 0) return Unsupported("do_rotary");
  const Shape &x = n.shape(0), &w = n.shape(1);
  if (x.size() != 3 || w.size() != 2 || x[2] != w[0])
    return InvalidArgument("input ", ShapeToString(x), " and weights ", ShapeToString(w));
  int64_t widths[3] = {w[1] / 3, w[1] / 3, w[1] / 3};
  if (const std::vector<int64_t> given = n.Ints("qkv_hidden_sizes"); given.size() == 3)
    std::copy(given.begin(), given.end(), widths);
  for (const int64_t width : widths) {
    if (width < 1 || width > w[1]) return InvalidArgument("qkv_hidden_sizes for weights ", ShapeToString(w));
  }
  if (widths[0] + widths[1] + widths[2] != w[1])
    return InvalidArgument("qkv_hidden_sizes for weights ", ShapeToString(w));
  if (n.Has(2) && n.shape(2) != Shape{w[1]}) return InvalidArgument("bias ", ShapeToString(n.shape(2)));
  const Shape product = {x[0] * x[1], w[1]};
  const View a = Reshaped(n.In(0), Shape{x[0] * x[1], x[2]}), b = n.In(1);
  View bias, y = n.New(a.type, product);
  if (n.Has(2)) bias = Broadcast(n.In(2), product);
  const DML_GEMM_OPERATOR_DESC desc{n.graph().In(a),
                                    n.graph().In(b),
                                    n.graph().In(n.Has(2) ? &bias : nullptr),
                                    n.graph().Out(&y),
                                    DML_MATRIX_TRANSFORM_NONE,
                                    DML_MATRIX_TRANSFORM_NONE,
                                    1,
                                    n.Has(2) ? 1.0f : 0.0f,
                                    nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GEMM, desc));
  return SelfAttention(n, Reshaped(y, Shape{x[0], x[1], w[1]}), widths, n.Int("num_heads", 0), 3, 4, 5,
                       n.type(0));
}

// input, weights, bias, input_scale, weight_scale, mask_index, input_zero_point, weight_zero_point, past
Status QAttention(Lowering& n) {
  const Shape &x = n.shape(0), &w = n.shape(1);
  if (x.size() != 3 || w.size() != 2 || x[2] != w[0] || w[1] % 3 != 0 || n.shape(2) != Shape{w[1]})
    return InvalidArgument("input ", ShapeToString(x), " and weights ", ShapeToString(w));
  const Shape product = {x[0] * x[1], w[1]};
  const View a = Reshaped(n.In(0), Shape{x[0] * x[1], x[2]}), b = n.In(1), bias = Broadcast(n.In(2), product);
  View views[4];
  for (const size_t i : {0, 1, 2, 3}) {
    const size_t input = i < 2 ? i + 3 : i + 4;
    if (!n.Has(input)) continue;
    const int64_t count = ElementCount(n.shape(input)).value_or(0);
    if (count != 1 && (i % 2 == 0 || count != w[1]))
      return InvalidArgument("a scale ", ShapeToString(n.shape(input)));
    views[i] = AlongAxis(n.In(input), 2, 1);
  }
  View y = n.New(n.dml_type(3), product);
  GraphBuilder& g = n.graph();
  const DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC desc{
      g.In(a),    g.In(views[0]), g.In(n.Has(6) ? &views[2] : nullptr),
      g.In(b),    g.In(views[1]), g.In(n.Has(7) ? &views[3] : nullptr),
      g.In(bias), g.Out(&y)};
  ANYDML_RETURN_IF_ERROR(g.Add(DML_OPERATOR_MATRIX_MULTIPLY_INTEGER_TO_FLOAT, desc));
  const int64_t width = w[1] / 3;
  return SelfAttention(n, Reshaped(y, Shape{x[0], x[1], w[1]}), {width, width, width}, n.Int("num_heads", 0),
                       5, 8, SIZE_MAX, n.type(3));
}

constexpr OperatorRow kFusedAttentionRows[] = {
    {kMicrosoft, "MultiHeadAttention", 1, 10, 0, MultiHeadAttention, nullptr},
    {kMicrosoft, "Attention", 2, 7, 0, FusedAttention, nullptr},
    {kMicrosoft, "QAttention", 5, 9, 0, QAttention, nullptr},
};

}  // namespace

std::span<const OperatorRow> MicrosoftAttentionOperators() { return kFusedAttentionRows; }

}  // namespace anydml::onnx
